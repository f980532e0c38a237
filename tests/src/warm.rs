//! Warm runtimes in tests: waiting for them, and how they were started.

use std::time::Duration;

use sandbox::{
    ForkPolicy, PoolStats, Report, RequestBuilder, Sandbox, SandboxBuilder, Stage, Start,
};

use crate::process::{Process, descendants};
use crate::wait::wait_for;

/// A virtual machine on a busy host needs seconds.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// This many requests without a ready runtime make the pool fork the next ones.
const MISSES_UNTIL_FORK: usize = 3;

/// How a warm runtime was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMethod {
    /// In its sandbox, independently of all others.
    Fresh,
    /// Forked from a zygote.
    Forked,
}

impl StartMethod {
    /// Builds a sandbox that starts all its warm Pythons in this way.
    pub fn only(self) -> SandboxBuilder {
        let policy = match self {
            Self::Fresh => ForkPolicy::Never,
            Self::Forked => ForkPolicy::Always,
        };
        Sandbox::builder().fork_policy(policy)
    }
}

/// The process of a warm runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmRuntime {
    /// The process.
    pub process: Process,
    /// How it was started.
    pub method: StartMethod,
}

/// Executes a request that must be accepted.
pub fn execute(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    let request = request.build().expect("the request is valid");
    let report = sandbox.execute(request);
    report.unwrap_or_else(|error| panic!("{}", sandbox::with_causes(&error)))
}

/// Waits until the pools are full, executes a request, and checks that it started warm.
pub fn execute_warm(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    wait_until_full(sandbox);
    let report = execute(sandbox, request);
    // A program that was not compiled did not start.
    if report.stage == Stage::Run {
        assert_eq!(start_of_run(&report), Start::Warm, "{:?}", sandbox.pool());
    }
    report
}

/// How the run stage started.
pub fn start_of_run(report: &Report) -> Start {
    let run = report.stages.iter().find(|stage| stage.name == Stage::Run);
    run.expect("there is a run stage").start
}

/// Fills the pool for requests like this one. The second use of a runtime creates its pool.
pub fn prime(sandbox: &Sandbox, request: impl Fn() -> RequestBuilder) {
    execute(sandbox, request());
    execute(sandbox, request());
    wait_until_full(sandbox);
}

/// Runs more programs at once than runtimes are ready, until all warm Pythons are forks.
pub fn overload_until_forked(sandbox: &Sandbox, run: impl Fn() + Sync) {
    let forked = wait_for(TEST_TIMEOUT, || {
        let ready: usize = sandbox.pool()?.warm.iter().map(|kind| kind.ready).sum();
        std::thread::scope(|scope| {
            for _ in 0..ready + MISSES_UNTIL_FORK {
                scope.spawn(&run);
            }
        });
        wait_for(TEST_TIMEOUT, || is_full(&sandbox.pool()?).then_some(()))?;
        let runtimes = warm_runtimes("python3");
        let all = runtimes.iter().all(|runtime| runtime.method == StartMethod::Forked);
        (all && !runtimes.is_empty()).then_some(())
    });
    assert!(forked.is_some(), "{:?}\n{:?}", warm_runtimes("python3"), sandbox.pool());
}

/// Waits until every warm pool has its target size.
pub fn wait_until_full(sandbox: &Sandbox) {
    let full = wait_for(TEST_TIMEOUT, || is_full(&sandbox.pool()?).then_some(()));
    assert!(full.is_some(), "{:?}", sandbox.pool());
}

/// Whether there is a warm pool, and every pool has its target size.
pub fn is_full(pool: &PoolStats) -> bool {
    let mut kinds = pool.warm.iter();
    pool.warm.iter().any(|kind| kind.wanted > 0)
        && kinds.all(|kind| kind.failure.is_none() && kind.ready >= kind.wanted)
}

/// Runtimes of this process name in sandboxes of this process: ready ones, and those of programs that run or whose sandbox is
/// not torn down yet.
pub fn warm_runtimes(name: &str) -> Vec<WarmRuntime> {
    let inside = named(name).filter(|(_, is_inside)| *is_inside).map(|(process, _)| process);
    inside
        .filter_map(|process| Some(WarmRuntime { method: start_method(&process)?, process }))
        .collect()
}

/// Zygotes of this process name.
pub fn zygotes(name: &str) -> Vec<Process> {
    named(name).filter(|(_, is_inside)| !is_inside).map(|(process, _)| process).collect()
}

/// Processes of this name, each with whether its parent is the init of a sandbox.
fn named(name: &str) -> impl Iterator<Item = (Process, bool)> {
    let all = descendants();
    let inits: Vec<i32> =
        all.iter().filter(|process| is_init(process)).map(|process| process.id).collect();
    let named: Vec<_> = all.into_iter().filter(|process| process.name == name).collect();
    named.into_iter().map(move |process| {
        let is_inside = inits.contains(&process.parent);
        (process, is_inside)
    })
}

/// Whether the process is the first one of a PID namespace.
fn is_init(process: &Process) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id));
    let status = status.unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let mut ids = ids.unwrap_or_default().split_ascii_whitespace();
    ids.clone().count() > 1 && ids.next_back() == Some("1")
}

/// Forks have the zygote library mapped. `None` for a process that exits meanwhile: its mappings go first.
fn start_method(process: &Process) -> Option<StartMethod> {
    let read = || std::fs::read_to_string(format!("/proc/{}/maps", process.id)).ok();
    let (maps, afterwards) = (read()?, read()?);
    if afterwards.is_empty() {
        return None;
    }
    Some(if maps.contains("fork.so") { StartMethod::Forked } else { StartMethod::Fresh })
}
