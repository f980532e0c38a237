//! The cost of an execution beside many running programs: sleeping programs, and a hello.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbox::{EventKind, Execution, Limits, Request, Sandbox};

use super::contender::{Contender, Way};
use super::subjects::Subject;
use crate::measure::{Summary, in_turns};
use crate::usage::HostMemory;

/// Prints a line when it has started, then sleeps.
const WAITING: &str = "echo up; exec sleep 280";
/// Longer than anything here takes.
const ENOUGH: Duration = Duration::from_mins(5);

/// The cost with one number of running programs.
pub(crate) struct Growth {
    pub(crate) in_flight: usize,
    /// From asking for the first until the last one said that it is there, for each.
    pub(crate) start: Duration,
    /// From cancelling the first until the last report, for each.
    pub(crate) end: Duration,
    /// KiB of the host's memory, for each.
    pub(crate) memory_kib: f64,
    /// The small program beside them, bare and ours.
    pub(crate) bare: Summary,
    pub(crate) ours: Summary,
}

pub(super) fn measure(
    sandbox: &Sandbox,
    small: &Subject<'_>,
    in_flight: usize,
    runs: usize,
) -> anyhow::Result<Growth> {
    allow_descriptors()?;
    let each = u32::try_from(in_flight)?.max(1);
    let before = HostMemory::now()?;
    let begun = Instant::now();
    let mut up: Vec<Execution> =
        (0..in_flight).map(|_| start_waiting(sandbox)).collect::<Result<_, _>>()?;
    for execution in &mut up {
        let mut events = execution.events();
        let first = events.find_map(|event| match event.kind {
            EventKind::Output(..) => Some(Ok(())),
            EventKind::Report(report) => Some(Err(report.error.unwrap_or_default())),
            _ => None,
        });
        if let Some(Err(error)) = first {
            bail!("of {in_flight} at once, one could not be started: {error}");
        }
    }
    let start = begun.elapsed() / each;
    let memory_kib = (HostMemory::now()?.used - before.used) / f64::from(each);
    let (bare, ours) = beside(small, runs)?;
    let begun = Instant::now();
    for execution in &up {
        execution.cancel();
    }
    for execution in up {
        execution.wait().context("end one that waits")?;
    }
    let end = begun.elapsed() / each;
    Ok(Growth { in_flight, start, end, memory_kib, bare, ours })
}

/// As many as this process may have: a shell allows fewer by default than many executions need.
fn allow_descriptors() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("allow descriptors")
}

fn start_waiting(sandbox: &Sandbox) -> anyhow::Result<Execution> {
    let limits = Limits::run().with_wall_time(ENOUGH)?;
    let request = Request::builder("bash").code(WAITING).limits(limits).build()?;
    Ok(sandbox.start(request)?)
}

/// The small program bare and in our sandbox, in turns.
fn beside(small: &Subject<'_>, runs: usize) -> anyhow::Result<(Summary, Summary)> {
    let both: [&dyn Contender; 2] = [small.way(Way::Bare)?, small.way(Way::Prepared)?];
    let series = in_turns(2, 0, runs, |place, _| Ok(vec![both[place].run()?]))?;
    Ok((series[0].summary(), series[1].summary()))
}
