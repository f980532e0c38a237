//! A helper process that holds System V shared memory, which safe Rust cannot create.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = include_str!("shm_holder.py");

/// The helper process. It removes the shared memory when this is dropped or this process dies.
pub(super) struct ShmHolder {
    process: Child,
    shm_key: u32,
}

impl ShmHolder {
    /// Starts the helper and waits until it is ready. It also removes `directory` at its end.
    pub(super) fn start(
        python: Option<&Path>,
        secret: &str,
        directory: &Path,
    ) -> Result<Self, String> {
        let python = python.ok_or("Python is needed on the host to set this attack up")?;
        Self::spawn(python, secret, directory)
            .map_err(|error| format!("the helper for shared memory cannot be started: {error}"))
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
        // An early return drops it, which waits for its end.
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
        // The helper exits at the end of its input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
