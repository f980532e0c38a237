//! What is run, and in which ways: the same program bare, under bubblewrap, and in our sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};
use sandbox_core::{
    Backend, CancelToken, Ending, Limits, Observer, ProcessSpec, Protection, SandboxSpec, Stage,
    StageOutcome, StagePlan, StreamKind, UsageSample,
};
use serde::{Deserialize, Serialize};

/// What bubblewrap is asked for: every namespace it has, and the same view of the host as ours.
/// It has no limits, no filter and no Landlock rules; ours has all of them.
pub(crate) const BUBBLEWRAP: &str = "/usr/bin/bwrap --unshare-all --ro-bind /usr /usr \
    --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
    --proc /proc --dev /dev --tmpfs /tmp --die-with-parent";

/// The program under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    True,
    Python,
}

/// How it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Bare,
    Bubblewrap,
    Ours,
    OursUnprepared,
}

/// A program and a way to run it.
pub(crate) struct Case<'a> {
    pub(crate) way: Way,
    runner: Runner<'a>,
}

enum Runner<'a> {
    Process(Vec<&'static str>),
    Sandbox(&'a NativeBackend, Box<StagePlan>),
}

/// One measured run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) total: Duration,
    /// When the first byte of output was there; only some benchmarks ask.
    pub(crate) first_output: Option<Duration>,
    /// Where the time went; only our sandbox tells.
    pub(crate) stages: Option<Stages>,
}

/// The stages of a run in our sandbox, as far as its report tells them apart.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Stages {
    /// From the request until the notice that the program, confined, is about to start. It does not wait
    /// for that: what it does until we have heard is counted here and as its own time.
    pub(crate) prepare: Duration,
    /// From exec until init has seen the program's end.
    pub(crate) program: Duration,
    /// From that news until the answer is complete: counters read, files collected.
    pub(crate) collect: Duration,
    /// What is left of the total: the news of the end on its way to us.
    pub(crate) between: Duration,
}

impl Run {
    /// One of which only the time is known that it took.
    pub(crate) fn lasting(total: Duration) -> Self {
        Self { total, first_output: None, stages: None }
    }
}

impl Payload {
    pub(crate) const ALL: [Self; 2] = [Self::True, Self::Python];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::True => "/bin/true",
            Self::Python => "python3 -c 'print(1)'",
        }
    }

    fn command(self) -> &'static [&'static str] {
        match self {
            Self::True => &["/bin/true"],
            // The whole path: the first one found by name may be a shim that no sandbox can see.
            Self::Python => &["/usr/bin/python3", "-c", "print(1)"],
        }
    }

    fn stdout(self) -> &'static [u8] {
        match self {
            Self::True => b"",
            Self::Python => b"1\n",
        }
    }
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Bubblewrap => "bubblewrap",
            Self::Ours => "ours",
            Self::OursUnprepared => "ours, nothing prepared",
        }
    }

    /// What a row of this name contains.
    pub(crate) fn contents(self) -> &'static str {
        match self {
            Self::Bare => "posix_spawn from this process, then waiting for its end; no isolation",
            Self::Bubblewrap => {
                "the same, of bwrap --unshare-all with /usr read-only, /proc, /dev and /tmp; \
                 no limit, no filter"
            }
            Self::Ours => {
                "from the request to the complete answer through the library's backend: every protection \
                 and every cgroup limit on, output captured, counters read; spare slots as by default"
            }
            Self::OursUnprepared => {
                "the same without spare slots: cgroup, ids and network namespace are made on request"
            }
        }
    }
}

/// Our backend with every protection.
pub(crate) fn start_backend(spare: Spare) -> anyhow::Result<NativeBackend> {
    start_backend_without(spare, BTreeSet::new())
}

/// Our backend with some protections off.
pub(crate) fn start_backend_without(
    spare: Spare,
    without: BTreeSet<Protection>,
) -> anyhow::Result<NativeBackend> {
    let options = NativeOptions { without, spare, ..NativeOptions::default() };
    NativeBackend::start(&options).context("start the native backend")
}

impl<'a> Case<'a> {
    pub(crate) fn bare(payload: Payload) -> Self {
        Self { way: Way::Bare, runner: Runner::Process(payload.command().to_vec()) }
    }

    pub(crate) fn bubblewrap(payload: Payload) -> anyhow::Result<Self> {
        let command: Vec<_> =
            BUBBLEWRAP.split(' ').chain(payload.command().iter().copied()).collect();
        let program = command[0];
        ensure!(
            Path::new(program).exists(),
            "{program} is missing: scripts/setup bench installs it"
        );
        Ok(Self { way: Way::Bubblewrap, runner: Runner::Process(command) })
    }

    pub(crate) fn ours(payload: Payload, way: Way, backend: &'a NativeBackend) -> Self {
        Self { way, runner: Runner::Sandbox(backend, Box::new(plan(payload))) }
    }

    /// Runs once, and makes sure that it did what it should: a failure is quick and would look good.
    pub(crate) fn run(&self, payload: Payload) -> anyhow::Result<Run> {
        match &self.runner {
            Runner::Process(command) => run_process(command),
            Runner::Sandbox(backend, plan) => run_sandbox(backend, plan, payload),
        }
    }

    /// Protections that do not stand around a run of this case.
    pub(crate) fn not_enforced(&self) -> anyhow::Result<Vec<Protection>> {
        let Runner::Sandbox(backend, plan) = &self.runner else {
            return Ok(Protection::ALL.to_vec());
        };
        let enforced = run_plan(backend, plan)?.enforced;
        let all = Protection::ALL.iter().copied();
        Ok(all.filter(|protection| !enforced.contains(protection)).collect())
    }
}

fn run_process(command: &[&str]) -> anyhow::Result<Run> {
    let begun = Instant::now();
    let status = Command::new(command[0])
        .args(&command[1..])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let total = begun.elapsed();
    let status = status.with_context(|| format!("start {}", command[0]))?;
    ensure!(status.success(), "{} ended with {status}", command[0]);
    Ok(Run::lasting(total))
}

fn run_sandbox(backend: &NativeBackend, plan: &StagePlan, payload: Payload) -> anyhow::Result<Run> {
    let begun = Instant::now();
    let outcome = run_plan(backend, plan)?;
    let total = begun.elapsed();
    if outcome.ending != Ending::Exited(0) || outcome.stdout != payload.stdout() {
        bail!("{} in our sandbox: {outcome:?}", payload.name());
    }
    let told = outcome.prepare_time + outcome.usage.wall_time + outcome.collect_time;
    Ok(Run {
        total,
        first_output: None,
        stages: Some(Stages {
            prepare: outcome.prepare_time,
            program: outcome.usage.wall_time,
            collect: outcome.collect_time,
            between: total.saturating_sub(told),
        }),
    })
}

fn run_plan(backend: &NativeBackend, plan: &StagePlan) -> anyhow::Result<StageOutcome> {
    let outcome = backend.run(plan, &mut Deaf, &CancelToken::new());
    outcome.context("run in our sandbox")
}

fn plan(payload: Payload) -> StagePlan {
    let command = payload.command().iter().map(ToString::to_string).collect();
    // The defaults, and a limit on CPU time, so that nothing the sandbox can hold is left out.
    let limits = Limits::run().with_cpu_time(Duration::from_secs(10));
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let sandbox = SandboxSpec::new(limits.expect("ten seconds is in the range of CPU times"));
    StagePlan::new(Stage::Run, sandbox, ProcessSpec::new(command, env))
}

/// Ignores events: they are not part of the measurement.
struct Deaf;

impl Observer for Deaf {
    fn output(&mut self, _: StreamKind, _: &[u8]) {}
    fn usage(&mut self, _: UsageSample) {}
}
