//! `--warm`: the same results with and without a helper, and the helper's lifecycle.

mod endings;
mod from_inside;
mod lifecycle;
mod other_users;
mod same_results;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{BINARY, CommandOutput, TIMEOUT, family, wait_until, wait_until_gone};

/// A user's session with helpers of its own, none of which outlives it.
struct Session {
    runtime: TempDir,
    binary: PathBuf,
    settings: Vec<(&'static str, OsString)>,
}

impl Session {
    fn new() -> Self {
        let runtime = tempfile::tempdir().unwrap();
        Self { runtime, binary: BINARY.into(), settings: Vec::new() }
    }

    /// The same with one more variable.
    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("XDG_RUNTIME_DIR", self.runtime.path()).stdin(Stdio::null());
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Calls the command as it is.
    fn call(&self, args: &[&str]) -> CommandOutput {
        let mut command = assert_cmd::Command::from_std(self.command());
        command.args(args).timeout(10 * TIMEOUT).output().unwrap().into()
    }

    /// Calls the command with `--warm`.
    fn warm(&self, args: &[&str]) -> CommandOutput {
        self.call(&[&["--warm"], args].concat())
    }

    /// Starts the command with `--warm` and waits for the program's first line.
    fn start(&self, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
        let mut command = self.command();
        command.arg("--warm").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        (child, stdout)
    }

    fn status(&self) -> Vec<Value> {
        self.call(&["warm", "status", "--json"]).json().as_array().unwrap().clone()
    }

    /// The process of the only helper.
    fn helper(&self) -> u32 {
        let status = self.status();
        assert_eq!(status.len(), 1, "{status:?}");
        process(&status[0])
    }

    /// Where the helpers have their files.
    fn place(&self) -> PathBuf {
        self.runtime.path().join("sandbox-run")
    }

    /// The socket of the only helper.
    fn socket(&self) -> PathBuf {
        let files = std::fs::read_dir(self.place()).unwrap().map(|entry| entry.unwrap().path());
        let mut sockets = files.filter(|path| path.extension().is_some_and(|end| end == "socket"));
        let socket = sockets.next().unwrap();
        assert_eq!(sockets.next(), None);
        socket
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What was found wrong is told already; the helpers end all the same.
            let _ = self.command().args(["warm", "stop"]).status();
            return;
        }
        let families: Vec<_> = self.status().iter().map(|one| family(process(one))).collect();
        let stopped = self.call(&["warm", "stop"]);
        assert_eq!((stopped.code, stopped.stderr.as_str()), (Some(0), ""));
        for family in families {
            wait_until_gone(&family);
        }
    }
}

fn process(status: &Value) -> u32 {
    status["process"].as_u64().unwrap().try_into().unwrap()
}

fn send(process: u32, signal: Signal) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

fn end(mut child: Child) -> CommandOutput {
    wait_until("the command to end", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap().into()
}

fn is_there(process: u32) -> bool {
    // One that waits to be reaped has ended.
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until none of the helper's programs is running: only what is prepared is left.
fn wait_until_nothing_runs(helper: u32) {
    wait_until("the programs to go", || {
        family(helper).into_iter().all(|process| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.is_empty()
                || line.starts_with(b"sandbox-launcher")
                || line.starts_with(b"sandbox-run\0warm\0serve")
        })
    });
}

/// By a process of its own: a file that this one has open to write, or a child that a test beside this one
/// just forked, cannot be started.
fn copy_of_the_command(to: &Path) {
    assert!(Command::new("cp").arg(BINARY).arg(to).status().unwrap().success());
}

/// A language of one's own that prints a word.
fn write_recipe(configuration: &Path, word: &str) {
    let directory = configuration.join("sandbox-run/runtimes/toy");
    std::fs::create_dir_all(&directory).unwrap();
    let recipe = format!(
        "name = 'toy'\nentry = 'main.toy'\n[toolchain]\nprograms = ['/bin/sh']\n\
         install = 'nothing'\nversion = {{ args = ['-c', 'echo 1.2.3'] }}\n\
         [run]\ncommand = ['{{program}}', '-c', 'echo {word}']\n\
         [hello]\ncode = 'x'\nexpected = '{word}'\n"
    );
    std::fs::write(directory.join("runtime.toml"), recipe).unwrap();
}

const A_MOMENT: Duration = Duration::from_millis(100);
