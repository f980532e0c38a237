//! A process beside this one that holds what safe Rust cannot: shared memory of the System V kind.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = include_str!("shm_holder.py");

/// The process. It removes what it holds when this is dropped, or when this process is gone.
pub(super) struct ShmHolder {
    process: Child,
    shm_key: u32,
}

impl ShmHolder {
    /// Starts it and waits until everything is there. `directory` goes with it.
    pub(super) fn start(
        python: Option<&Path>,
        secret: &str,
        directory: &Path,
    ) -> Result<Self, String> {
        let python = python.ok_or("Python is needed on the host to set this attack up")?;
        Self::spawn(python, secret, directory)
            .map_err(|error| format!("the keeper of shared memory cannot be started: {error}"))
    }

    fn spawn(python: &Path, secret: &str, directory: &Path) -> io::Result<Self> {
        let mut process = Command::new(python)
            .args(["-I", "-S", "-c", PROGRAM, secret])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let mut shm_holder = Self { process, shm_key: 0 };
        // Dropping it on the way out waits for its end.
        shm_holder.shm_key = line.trim().parse().map_err(io::Error::other)?;
        Ok(shm_holder)
    }

    pub(super) fn shm_key(&self) -> String {
        self.shm_key.to_string()
    }

    pub(super) fn pid(&self) -> String {
        self.process.id().to_string()
    }
}

impl Drop for ShmHolder {
    fn drop(&mut self) {
        // The end of its input is what it waits for; `wait` would close it too, but says so less.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
