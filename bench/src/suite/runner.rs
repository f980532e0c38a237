//! A small second process of this program that starts commands and reports how long they took.
//!
//! A process that watches many sandboxes has many descriptors, and the kernel goes through all of them whenever
//! it starts a program: with 350 of them `/bin/true` took 5 % longer bare, with 2,600 of them 40 %. That would
//! flatter us. So whatever runs outside our sandbox is started from a process that has few.
//!
//! A second one lives in a mount namespace of its own: crun refuses a host that mounts cgroup v2 beside v1, so
//! that mount is hidden from it. Entering such a namespace for each run would be counted as crun's own time.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::contender::{Contender, Process};
use super::parallel::{self, Round};
use super::process;
use crate::cases::Run;

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
        let answer = self.ask(&question(process))?;
        let time = |name: &str| answer[name].as_u64().map(Duration::from_nanos);
        let total = time("total").context("the runner tells the time")?;
        Ok(Run { total, first_output: time("first_output"), stages: None })
    }

    /// Runs it repeatedly with this many workers.
    fn run_parallel(
        &self,
        process: &Process,
        workers: usize,
        length: Duration,
    ) -> anyhow::Result<Round> {
        let mut question = question(process);
        question["workers"] = json!(workers);
        question["length"] = json!(nanos(length));
        let answer = self.ask(&question)?;
        let times: Vec<u64> = serde_json::from_value(answer["times"].clone())?;
        let elapsed = answer["elapsed"].as_u64().context("the runner tells the time")?;
        let times = times.into_iter().map(Duration::from_nanos).collect();
        Ok(Round { times, elapsed: Duration::from_nanos(elapsed) })
    }

    fn ask(&self, question: &Value) -> anyhow::Result<Value> {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        talk.0.write_all(format!("{question}\n").as_bytes()).context("ask the runner")?;
        let mut line = String::new();
        talk.1.read_line(&mut line).context("hear the runner")?;
        let answer: Value = serde_json::from_str(&line).context("the runner is gone")?;
        if let Some(error) = answer["error"].as_str() {
            bail!("{error}");
        }
        Ok(answer)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
        self.runner.run_parallel(&self.process, workers, length)
    }
}

fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("find this program")
}

fn question(process: &Process) -> Value {
    json!({
        "commands": process.commands,
        "directory": process.directory,
        "expected": String::from_utf8_lossy(process.expected),
    })
}

/// Does what lines on standard input ask, until they end.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        let answer =
            answer(&question).unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(format!("{answer}\n").as_bytes())?;
        stdout.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(question: &Value) -> anyhow::Result<Value> {
    let commands: Vec<process::Words> = serde_json::from_value(question["commands"].clone())?;
    let directory = question["directory"].as_str().context("there is a directory")?;
    let expected = question["expected"].as_str().unwrap_or_default();
    let run = || process::run(&commands, Path::new(directory), expected.as_bytes());
    let Some(workers) = question["workers"].as_u64() else {
        let run = run()?;
        let first_output = run.first_output.map(nanos);
        return Ok(json!({ "total": nanos(run.total), "first_output": first_output }));
    };
    let length = Duration::from_nanos(question["length"].as_u64().unwrap_or_default());
    let round = parallel::together(&run, usize::try_from(workers)?, length)?;
    let times: Vec<u64> = round.times.iter().copied().map(nanos).collect();
    Ok(json!({ "times": times, "elapsed": nanos(round.elapsed) }))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
