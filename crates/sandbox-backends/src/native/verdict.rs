//! The outcome of a stage, from what the supervisor observed: ending, usage, files.

use std::os::fd::AsFd;
use std::time::Duration;

use sandbox_core::{
    BackendError, ByteSize, CollectRule, Ending, InputFile, Protection, StageOutcome, StagePlan,
    StageUsage, Start, TimeKind, Violation, WorkspaceOutcome,
};
use sandbox_linux::cgroup::Usage;
use sandbox_linux::collect;
use sandbox_protocol::notice::ExitNotice;

use super::host::{Host, OWN_PROCESSES};
use super::supervise::{Cause, Ended};
use super::workspace;
use crate::error::failed;

/// Determines the ending and collects files. The slot is torn down afterwards.
pub(crate) fn conclude(
    host: &Host,
    ended: Ended<'_>,
    plan: &StagePlan,
) -> Result<StageOutcome, BackendError> {
    let slot = ended.running.slot;
    let after = slot.slot.cgroup.usage();
    let after = after.map_err(|error| failed("read what the sandbox used", error))?;
    slot.note_held_bytes(after.memory_current);
    let oom_kills = slot.slot.cgroup.oom_kills();
    let oom_kills =
        oom_kills.map_err(|error| failed("read the OOM counter of the sandbox", error))?;
    if let Some(limit) = host.cgroup_limits(&plan.limits).memory_bytes
        && was_killed_within(limit, oom_kills, after.memory_peak)
    {
        let cause = "the kernel ended it because all sandboxes together, or the host's cgroup around them, had no \
                     memory left; it was within its own limit";
        return Err(failed("run the program", cause));
    }
    let wall_time = wall_time(ended.cause, ended.exit.as_ref(), ended.run_time);
    let mut usage = usage(host, &slot.before, &after, ended.exit.as_ref(), wall_time);
    usage.io_write_bytes = usage.io_write_bytes.saturating_sub(ended.running.placed);
    let status = ended.exit.as_ref().map(|exit| (exit.code, exit.signal));
    let has = |protection| host.has(protection);
    let ending = ending(&has, plan, ended.cause, status, oom_kills, &usage)
        .ok_or_else(|| failed("watch the sandbox", "it ended without an exit status"))?;
    let work = ended.work.as_ref().unwrap_or(&slot.slot.work).as_fd();
    let placed: Vec<&InputFile> = plan.all_files().collect();
    let found = collect::collect(work, &collect_rule(host, plan), &placed);
    let ending = match ending {
        Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
        ending => ending,
    };
    let workspace = workspace::save(work, plan, ending)?;
    let ending = match &workspace {
        Some(workspace) if workspace.refusal.is_some() => Ending::TooMuchForWorkspace,
        _ => ending,
    };
    Ok(StageOutcome {
        ending,
        usage,
        stdout: ended.kept.stdout,
        stderr: ended.kept.stderr,
        output: ended.kept.both,
        stdout_truncated: ended.kept.stdout_truncated,
        stderr_truncated: ended.kept.stderr_truncated,
        files: found.files,
        skipped: found.skipped,
        workspace,
        enforced: host.enforced(plan),
        violations: ended
            .violations
            .into_iter()
            .map(|(syscall, count)| Violation { syscall, count })
            .collect(),
        network: ended.network,
        proxy_refusals: ended.proxy_refusals,
        start: slot.start,
        prepare_time: ended.prepare_time,
        collect_time: ended.at.elapsed(),
    })
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

/// Determines the ending: kernel counters first, then the supervisor's own actions, then the
/// program's exit. `exit` is the exit code or the signal.
pub(crate) fn ending(
    has: &dyn Fn(Protection) -> bool,
    plan: &StagePlan,
    cause: Option<Cause>,
    exit: Option<(Option<i32>, Option<i32>)>,
    oom_kills: u64,
    usage: &StageUsage,
) -> Option<Ending> {
    if oom_kills > 0 && has(Protection::Memory) {
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
    // It may have exited between two checks of a limit that was already exceeded.
    let over = |kind, limit: Duration, used: Duration| (used > limit && has(kind)).then_some(());
    if over(Protection::WallTime, plan.limits.wall_time(), usage.wall_time).is_some() {
        return Some(Ending::TimedOut(TimeKind::Wall));
    }
    if let Some(limit) = plan.limits.cpu_time()
        && over(Protection::CpuTime, limit, usage.cpu_time()).is_some()
    {
        return Some(Ending::TimedOut(TimeKind::Cpu));
    }
    match exit {
        (Some(code), _) => Some(Ending::Exited(code)),
        (None, Some(signal)) => Some(Ending::Signaled(signal)),
        (None, None) => None,
    }
}

/// How long the program ran. Init measures start and end most precisely; but the wall-clock limit
/// is enforced by the supervisor's clock, which may start some milliseconds earlier on a busy
/// machine.
pub(crate) fn wall_time(
    cause: Option<Cause>,
    exit: Option<&ExitNotice>,
    run_time: Duration,
) -> Duration {
    match exit {
        Some(exit) if cause != Some(Cause::Time(TimeKind::Wall)) => {
            Duration::from_nanos(exit.wall_nanos)
        }
        _ => run_time,
    }
}

fn usage(
    host: &Host,
    before: &Usage,
    after: &Usage,
    exit: Option<&ExitNotice>,
    wall_time: Duration,
) -> StageUsage {
    let none = ExitNotice::default();
    let notice = exit.unwrap_or(&none);
    let (cpu_user, cpu_system) = cpu_times(host, before, after, notice);
    let memory_peak_kb = match after.memory_peak {
        // The counter that the limit applies to; it includes a few hundred KiB of init and the
        // slot.
        Some(peak) => peak / 1024,
        None => notice.max_rss_kib,
    };
    StageUsage {
        wall_time,
        cpu_user,
        cpu_system,
        memory_peak_kb,
        processes_peak: after.pids_peak.map_or(1, |peak| peak.saturating_sub(OWN_PROCESSES).max(1)),
        io_read_bytes: notice.read_bytes,
        io_write_bytes: notice.written_bytes,
    }
}

/// The cgroup's total is exact and includes processes that were never reaped, but its split into
/// user and system time is sampled by the timer tick. The split is taken from what init got for
/// each reaped process.
fn cpu_times(
    host: &Host,
    before: &Usage,
    after: &Usage,
    notice: &ExitNotice,
) -> (Duration, Duration) {
    let waited_for =
        (Duration::from_micros(notice.user_micros), Duration::from_micros(notice.system_micros));
    if !host.enforces.cpu_accounting {
        return waited_for;
    }
    // Subtract init's own work.
    let init = Duration::from_micros(notice.init_user_micros + notice.init_system_micros);
    let total = after.cpu_total.saturating_sub(before.cpu_total).saturating_sub(init);
    let ticks = |after: Option<Duration>, before: Option<Duration>| {
        after.unwrap_or_default().saturating_sub(before.unwrap_or_default())
    };
    let sampled =
        (ticks(after.cpu_user, before.cpu_user), ticks(after.cpu_system, before.cpu_system));
    let (user, system) =
        if waited_for.0 + waited_for.1 > Duration::ZERO { waited_for } else { sampled };
    // Time that no tick sampled counts as user time, as in the kernel.
    let share = match (user + system).as_secs_f64() {
        0.0 => 1.0,
        both => user.as_secs_f64() / both,
    };
    let user = total.mul_f64(share.clamp(0.0, 1.0));
    (user, total.saturating_sub(user))
}

/// The outcome of a stage that was cancelled before it had a sandbox.
pub(crate) fn cancelled(plan: &StagePlan, waited: Duration) -> StageOutcome {
    let nothing = || WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
    StageOutcome {
        ending: Ending::Cancelled,
        usage: StageUsage::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        output: Vec::new(),
        stdout_truncated: false,
        stderr_truncated: false,
        files: Vec::new(),
        skipped: Vec::new(),
        workspace: plan.workspace.as_ref().map(|_| nothing()),
        enforced: Vec::new(),
        violations: Vec::new(),
        network: None,
        proxy_refusals: Vec::new(),
        start: Start::Cold,
        prepare_time: waited,
        collect_time: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::NativeOptions;

    fn usage(cpu_millis: u64) -> Usage {
        Usage { cpu_total: Duration::from_millis(cpu_millis), ..Usage::default() }
    }

    #[test]
    fn a_timed_out_program_has_run_for_the_whole_limit() {
        let notice = ExitNotice { wall_nanos: 988_000_000, ..ExitNotice::default() };
        let ours = Duration::from_millis(1001);
        let wall = Some(Cause::Time(TimeKind::Wall));
        assert_eq!(wall_time(wall, Some(&notice), ours), ours);
        assert_eq!(wall_time(wall, None, ours), ours);
        assert_eq!(wall_time(None, Some(&notice), ours), Duration::from_millis(988));
        let cpu = Some(Cause::Time(TimeKind::Cpu));
        assert_eq!(wall_time(cpu, Some(&notice), ours), Duration::from_millis(988));
    }

    #[test]
    fn cpu_time_is_the_cgroups_total_without_init_in_the_reported_split() {
        let hierarchy = sandbox_linux::cgroup::Hierarchy::detect();
        let mut host = Host::probe(&NativeOptions::default(), hierarchy, &[]).unwrap();
        let notice = ExitNotice {
            user_micros: 3000,
            system_micros: 1000,
            init_system_micros: 2000,
            ..ExitNotice::default()
        };
        host.enforces.cpu_accounting = true;
        let (user, system) = cpu_times(&host, &usage(10), &usage(20), &notice);
        assert_eq!((user, system), (Duration::from_millis(6), Duration::from_millis(2)));
        host.enforces.cpu_accounting = false;
        let (user, system) = cpu_times(&host, &usage(10), &usage(20), &notice);
        assert_eq!((user, system), (Duration::from_millis(3), Duration::from_millis(1)));
    }
}
