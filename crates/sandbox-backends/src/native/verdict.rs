//! The outcome of a stage in a slot: ending, usage, files, workspace.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sandbox_core::{
    BackendError, ByteSize, CollectRule, Ending, InputFile, Protection, StageOutcome, StagePlan,
    WorkspaceOutcome,
};
use sandbox_linux::collect;

use super::host::Host;
use super::supervise::SlotProgram;
use crate::error::failed;
use crate::supervise::{Ended, Supervised as _, without_program};
use crate::workspace;

/// Determines the ending and collects files. The slot is torn down afterwards.
pub(crate) fn conclude(
    host: &Host,
    program: SlotProgram<'_>,
    ended: Ended,
    plan: &StagePlan,
    begun: Instant,
) -> Result<StageOutcome, BackendError> {
    let counters = program.counters();
    let after = counters.cgroup.usage();
    let after = after.map_err(|error| failed("read what the sandbox used", error))?;
    let slot = &program.running.slot;
    slot.note_held_bytes(after.memory_current);
    let oom_kills = counters.cgroup.oom_kills();
    let oom_kills =
        oom_kills.map_err(|error| failed("read the OOM counter of the sandbox", error))?;
    if let Some(limit) = host.cgroup_limits(&plan.sandbox.limits).memory_bytes
        && was_killed_within(limit, oom_kills, after.memory_peak)
    {
        let cause = "the kernel ended it because all sandboxes together, or the host's cgroup around them, had no \
                     memory left; it was within its own limit";
        return Err(failed("run the program", cause));
    }
    let mut usage = ended.usage(&counters, &after);
    usage.io_write_bytes = usage.io_write_bytes.saturating_sub(program.running.placed);
    let oom_kills = if host.has(Protection::Memory) { oom_kills } else { 0 };
    let ending = ended.ending(oom_kills, &usage).ok_or_else(|| {
        // Nothing inside can kill init, and it reports every end of the program.
        let cause =
            "it ended without an exit status: its init, or the launcher, was killed from outside";
        failed("watch the sandbox", cause)
    })?;
    let work = program.work.as_ref().unwrap_or(&slot.slot.work).as_fd();
    let placed: Vec<&InputFile> = plan.sandbox.all_files().collect();
    let found = collect::collect(work, &collect_rule(host, plan), &placed);
    let at = ended.at;
    let outcome = StageOutcome {
        enforced: host.enforced(plan),
        start: slot.start,
        network: program.network_report,
        proxy_refusals: program.proxy_refusals,
        prepare_time: ended.started - begun,
        ..ended.into_outcome(ending, usage, found)
    };
    let outcome = workspace::conclude(work, plan, outcome)?;
    Ok(StageOutcome { collect_time: at.elapsed(), ..outcome })
}

/// Files count as output: without that protection all of them are collected.
fn collect_rule(host: &Host, plan: &StagePlan) -> CollectRule {
    let rule = plan.collect.clone();
    if host.has(Protection::Output) {
        return rule;
    }
    CollectRule { total: ByteSize::bytes(u64::MAX), count: usize::MAX, ..rule }
}

/// Whether the kernel killed a process for lack of memory although the sandbox was well below its
/// own limit. At its limit, the peak is at most a few pages below.
fn was_killed_within(limit: u64, oom_kills: u64, peak: Option<u64>) -> bool {
    oom_kills > 0 && peak.is_some_and(|peak| peak < limit - limit / 8)
}

/// The outcome of a stage that was cancelled before it had a sandbox.
pub(crate) fn cancelled(plan: &StagePlan, waited: Duration) -> StageOutcome {
    let nothing = || WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
    StageOutcome {
        workspace: plan.sandbox.workspace.as_ref().map(|_| nothing()),
        prepare_time: waited,
        ..without_program(Ending::Cancelled)
    }
}
