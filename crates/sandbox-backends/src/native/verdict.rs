//! From what was seen to what is said: how the stage ended, what it used, which files it left.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sandbox_core::{
    BackendError, Ending, Protection, StageFigures, StageOutcome, StagePlan, TimeKind, Violation,
};
use sandbox_linux::cgroup::Usage;
use sandbox_linux::{ExitNotice, Slot, collect};

use super::failed;
use super::host::{Host, OWN_PROCESSES};
use super::supervise::{Cause, Ended};

/// Judges, collects, and gives the slot back to be taken down.
pub(crate) fn conclude(
    host: &Host,
    ended: Ended,
    plan: &StagePlan,
) -> Result<(StageOutcome, Slot), BackendError> {
    let slot = ended.running.slot;
    let after = slot.slot.cgroup.usage();
    let after = after.map_err(|error| failed("read what the sandbox used", error))?;
    let oom_kills = slot.slot.cgroup.oom_kills();
    let oom_kills = oom_kills.map_err(|error| failed("read why the sandbox ended", error))?;
    let figures = figures(&slot.before, &after, ended.exit.as_ref(), ended.run_time);
    let ending = ending(
        host,
        plan,
        ended.cause,
        ended.exit.as_ref(),
        oom_kills,
        &figures,
    )
    .ok_or_else(|| failed("watch the sandbox", "it ended without saying how"))?;
    let found = match &ended.work {
        Some(work) => collect::collect(work.as_fd(), &plan.collect, &plan.files),
        None => collect::Collected::default(),
    };
    let ending = match ending {
        Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
        ending => ending,
    };
    let outcome = StageOutcome {
        ending,
        figures,
        stdout: ended.kept.stdout,
        stderr: ended.kept.stderr,
        output: ended.kept.both,
        stdout_truncated: ended.kept.stdout_truncated,
        stderr_truncated: ended.kept.stderr_truncated,
        files: found.files,
        skipped: found.skipped,
        enforced: host.enforced(plan),
        violations: ended
            .violations
            .into_iter()
            .map(|(syscall, count)| Violation { syscall, count })
            .collect(),
        prepare_time: ended.prepare_time,
        collect_time: Instant::now() - ended.ended_at,
    };
    Ok((outcome, slot.slot))
}

/// The kernel's counters speak first, then our own acts, then what the program did itself.
fn ending(
    host: &Host,
    plan: &StagePlan,
    cause: Option<Cause>,
    exit: Option<&ExitNotice>,
    oom_kills: u64,
    figures: &StageFigures,
) -> Option<Ending> {
    if oom_kills > 0 && host.has(Protection::Memory) {
        return Some(Ending::OutOfMemory);
    }
    match cause {
        Some(Cause::Time(kind)) => return Some(Ending::TimedOut(kind)),
        Some(Cause::Memory) => return Some(Ending::OutOfMemory),
        Some(Cause::Output) => return Some(Ending::TooMuchOutput),
        Some(Cause::Cancelled) => return Some(Ending::Cancelled),
        None => {}
    }
    let exit = exit?;
    // It may have ended by itself between two looks at a clock that had already run out.
    let over =
        |kind, limit: Duration, used: Duration| (used > limit && host.has(kind)).then_some(());
    if over(
        Protection::WallTime,
        plan.limits.wall_time(),
        figures.wall_time,
    )
    .is_some()
    {
        return Some(Ending::TimedOut(TimeKind::Wall));
    }
    if let Some(limit) = plan.limits.cpu_time()
        && over(Protection::CpuTime, limit, figures.cpu_time()).is_some()
    {
        return Some(Ending::TimedOut(TimeKind::Cpu));
    }
    match (exit.code, exit.signal) {
        (Some(code), _) => Some(Ending::Exited(code)),
        (None, Some(signal)) => Some(Ending::Signaled(signal)),
        (None, None) => None,
    }
}

fn figures(
    before: &Usage,
    after: &Usage,
    exit: Option<&ExitNotice>,
    run_time: Duration,
) -> StageFigures {
    let none = ExitNotice::default();
    let told = exit.unwrap_or(&none);
    // The cgroup counts every process, also those that nobody waited for; init's own work is not the
    // program's.
    let counted = |after: Option<Duration>, before: Option<Duration>, init: u64, told: u64| match (
        after, before,
    ) {
        (Some(after), Some(before)) => after
            .saturating_sub(before)
            .saturating_sub(Duration::from_micros(init)),
        _ => Duration::from_micros(told),
    };
    let memory_peak_kb = match after.memory_peak {
        Some(peak) => peak.saturating_sub(before.memory_current) / 1024,
        None => told.largest_kib,
    };
    StageFigures {
        wall_time: exit.map_or(run_time, |exit| Duration::from_nanos(exit.wall_nanos)),
        cpu_user: counted(
            after.cpu_user,
            before.cpu_user,
            told.init_user_micros,
            told.user_micros,
        ),
        cpu_system: counted(
            after.cpu_system,
            before.cpu_system,
            told.init_system_micros,
            told.system_micros,
        ),
        memory_peak_kb,
        processes_peak: after
            .pids_peak
            .map_or(1, |peak| peak.saturating_sub(OWN_PROCESSES).max(1)),
        io_read_bytes: told.read_bytes,
        io_write_bytes: told.written_bytes,
    }
}
