//! A small second process of this program that starts commands and reports how long they took.
//!
//! A process that watches many sandboxes has many descriptors, and the kernel goes through all of them whenever
//! it starts a program: with 350 of them `/bin/true` took 5 % longer bare, with 2,600 of them 40 %. That would
//! flatter us. So whatever runs outside our sandbox is started from a process that has few.
//!
//! A second one lives in a mount namespace of its own: crun refuses a host that mounts cgroup v2 beside v1, so
//! that mount is hidden from it. Entering such a namespace for each run would be counted as crun's own time.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::contender::Contender;
use super::process::Process;
use crate::cases::Run;
use crate::rounds::{Round, together};

/// The hidden command that [`serve`]s.
pub(crate) const COMMAND: &str = "runner";

const HIDE: &str = r#"
if [ -d /sys/fs/cgroup/unified ]; then umount --lazy /sys/fs/cgroup/unified || exit; fi
exec "$0" "$1""#;

pub(super) struct Runner {
    process: Child,
    /// One request at a time.
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Runner {
    pub(super) fn start() -> anyhow::Result<Self> {
        Self::begin(Command::new(own_program()?).arg(COMMAND))
    }

    /// One that does not see the cgroup v2 mount of a mixed host.
    pub(super) fn start_without_unified() -> anyhow::Result<Self> {
        let mut command = Command::new("/usr/bin/unshare");
        command.args(["--mount", "--propagation", "private", "/bin/sh", "-c", HIDE]);
        Self::begin(command.arg(own_program()?).arg(COMMAND))
    }

    fn begin(command: &mut Command) -> anyhow::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a small copy of this program")?;
        let stdin = process.stdin.take().context("it was started with a pipe")?;
        let stdout = process.stdout.take().context("it was started with a pipe")?;
        Ok(Self { process, talk: Mutex::new((stdin, BufReader::new(stdout))) })
    }

    /// Runs it once.
    pub(super) fn run(&self, process: &Process) -> anyhow::Result<Run> {
        self.ask(&Job { process: Cow::Borrowed(process), parallel: None })
    }

    fn ask<Found: DeserializeOwned>(&self, job: &Job<'_>) -> anyhow::Result<Found> {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let job = serde_json::to_string(job)? + "\n";
        talk.0.write_all(job.as_bytes()).context("ask the runner")?;
        let mut line = String::new();
        talk.1.read_line(&mut line).context("hear the runner")?;
        let answer: Result<Found, String> =
            serde_json::from_str(&line).context("the runner is gone")?;
        answer.map_err(anyhow::Error::msg)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A line on a runner's standard input. The answer is a [`Run`], or a [`Round`] if there are workers.
#[derive(Serialize, Deserialize)]
struct Job<'a> {
    process: Cow<'a, Process>,
    /// The number of workers, and for how long they run it.
    parallel: Option<(usize, Duration)>,
}

/// Commands that a runner starts.
pub(super) struct Started<'a> {
    pub(super) process: Process,
    pub(super) runner: &'a Runner,
}

impl Contender for Started<'_> {
    fn run(&self) -> anyhow::Result<Run> {
        self.runner.run(&self.process)
    }

    fn run_parallel(&self, workers: usize, length: Duration) -> anyhow::Result<Round> {
        let (process, parallel) = (Cow::Borrowed(&self.process), Some((workers, length)));
        self.runner.ask(&Job { process, parallel })
    }
}

fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("find this program")
}

/// Does what lines on standard input ask, until they end.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    for line in std::io::stdin().lock().lines() {
        let Job { process, parallel } = serde_json::from_str(&line?)?;
        let answer = match parallel {
            None => answer(process.run()),
            Some((workers, length)) => {
                let round = together(workers, length, || || Ok(process.run()?.total))?;
                answer(round.without_errors())
            }
        };
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(format!("{answer}\n").as_bytes())?;
        stdout.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(found: anyhow::Result<impl Serialize>) -> Value {
    json!(found.map_err(|error| format!("{error:#}")))
}
