//! Warm runtimes: waiting for them, and how they were started.

use std::time::Duration;

use sandbox::{
    ForkPolicy, PoolStats, Report, RequestBuilder, Sandbox, SandboxBuilder, Stage, Start,
};

use crate::process::{Process, descendants};
use crate::wait::wait_for;

/// A virtual machine on a busy host needs seconds.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// So many programs that find nothing waiting are enough for the next runtimes to be copies.
const TOO_MANY: usize = 3;

/// How a runtime came to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was started by itself.
    Own,
    /// A fork of a zygote.
    Copied,
}

impl Way {
    /// A sandbox in which every Python that waits came to do so in this way.
    pub fn only(self) -> SandboxBuilder {
        let policy = match self {
            Self::Own => ForkPolicy::Never,
            Self::Copied => ForkPolicy::Always,
        };
        Sandbox::builder().fork_policy(policy)
    }
}

/// A runtime that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its process.
    pub process: Process,
    /// How it came to wait.
    pub way: Way,
}

/// Executes a request that has to be taken.
pub fn execute(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    let request = request.build().expect("the request is a valid one");
    let report = sandbox.execute(request);
    report.unwrap_or_else(|error| panic!("{}", sandbox::with_causes(&error)))
}

/// Executes a request whose runtime waits for it, and makes sure that it did.
pub fn execute_warm(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    wait_until_full(sandbox);
    let report = execute(sandbox, request);
    // What could not be compiled is not run.
    if report.stage == Stage::Run {
        assert_eq!(start_of_run(&report), Start::Warm, "{:?}", sandbox.pool());
    }
    report
}

/// What was there for the program.
pub fn start_of_run(report: &Report) -> Start {
    let run = report.stages.iter().find(|stage| stage.name == Stage::Run);
    run.expect("the program was run").start
}

/// Makes runtimes of this shape wait: two programs, with time between them.
pub fn prime(sandbox: &Sandbox, request: impl Fn() -> RequestBuilder) {
    execute(sandbox, request());
    execute(sandbox, request());
    wait_until_full(sandbox);
}

/// Runs more programs at once than runtimes wait, until copies do and nothing else.
pub fn crowd_until_copied(sandbox: &Sandbox, run: impl Fn() + Sync) {
    let copied = wait_for(TEST_TIMEOUT, || {
        let waiting: usize = sandbox.pool()?.warm.iter().map(|kind| kind.ready).sum();
        std::thread::scope(|scope| {
            for _ in 0..waiting + TOO_MANY {
                scope.spawn(&run);
            }
        });
        wait_for(TEST_TIMEOUT, || is_full(&sandbox.pool()?).then_some(()))?;
        let members = members("python3");
        let all = members.iter().all(|member| member.way == Way::Copied);
        (all && !members.is_empty()).then_some(())
    });
    assert!(copied.is_some(), "{:?}\n{:?}", members("python3"), sandbox.pool());
}

/// Waits until everything waits that is to.
pub fn wait_until_full(sandbox: &Sandbox) {
    let full = wait_for(TEST_TIMEOUT, || is_full(&sandbox.pool()?).then_some(()));
    assert!(full.is_some(), "{:?}", sandbox.pool());
}

/// Whether something is to wait, and all of it does.
pub fn is_full(pool: &PoolStats) -> bool {
    let mut kinds = pool.warm.iter();
    pool.warm.iter().any(|kind| kind.wanted > 0)
        && kinds.all(|kind| kind.failure.is_none() && kind.ready >= kind.wanted)
}

/// The processes of this name that wait in sandboxes of this process, or run there: the last program may not be
/// taken down yet.
pub fn members(name: &str) -> Vec<Member> {
    let members = named(name).filter(|(_, is_inside)| *is_inside).map(|(process, _)| process);
    members.filter_map(|process| Some(Member { way: way(&process)?, process })).collect()
}

/// The processes of this name that are copied into sandboxes.
pub fn originals(name: &str) -> Vec<Process> {
    named(name).filter(|(_, is_inside)| !is_inside).map(|(process, _)| process).collect()
}

/// The processes of this name, and whether each is the child of a sandbox's first one.
fn named(name: &str) -> impl Iterator<Item = (Process, bool)> {
    let all = descendants();
    let inits: Vec<i32> =
        all.iter().filter(|process| is_first_inside(process)).map(|process| process.id).collect();
    let named: Vec<_> = all.into_iter().filter(|process| process.name == name).collect();
    named.into_iter().map(move |process| {
        let is_inside = inits.contains(&process.parent);
        (process, is_inside)
    })
}

/// Whether the process is the first one of a PID namespace.
fn is_first_inside(process: &Process) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id));
    let status = status.unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let mut ids = ids.unwrap_or_default().split_ascii_whitespace();
    ids.clone().count() > 1 && ids.next_back() == Some("1")
}

/// ForkPolicy have the library in them that makes copies. A process that is just ending has nothing in it, or has lost it
/// while it was read.
fn way(process: &Process) -> Option<Way> {
    let read = || std::fs::read_to_string(format!("/proc/{}/maps", process.id)).ok();
    let (maps, afterwards) = (read()?, read()?);
    if afterwards.is_empty() {
        return None;
    }
    Some(if maps.contains("fork.so") { Way::Copied } else { Way::Own })
}
