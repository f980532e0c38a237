//! From what was seen to what is said: how the stage ended, what it used, which files it left.

use std::os::fd::AsFd;
use std::time::Duration;

use sandbox_core::{
    BackendError, ByteSize, CollectRule, Ending, InputFile, Protection, StageFigures, StageOutcome,
    StagePlan, Start, TimeKind, Violation, WorkspaceOutcome,
};
use sandbox_linux::cgroup::Usage;
use sandbox_linux::collect;
use sandbox_protocol::notice::ExitNotice;

use super::host::{Host, OWN_PROCESSES};
use super::supervise::{Cause, Ended};
use super::workspace;
use crate::failed;

/// Judges and collects. The slot is taken down afterwards.
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
    let oom_kills = oom_kills.map_err(|error| failed("read why the sandbox ended", error))?;
    if let Some(limit) = host.cgroup_limits(&plan.limits).memory_bytes
        && was_killed_within(limit, oom_kills, after.memory_peak)
    {
        let cause = "the kernel ended it because all sandboxes together, or the host's cgroup around them, had no \
                     memory left; it was within its own limit";
        return Err(failed("run the program", cause));
    }
    let wall_time = wall_time(ended.cause, ended.exit.as_ref(), ended.run_time);
    let mut figures = figures(host, &slot.before, &after, ended.exit.as_ref(), wall_time);
    figures.io_write_bytes = figures.io_write_bytes.saturating_sub(ended.running.placed);
    let told = ended.exit.as_ref().map(|exit| (exit.code, exit.signal));
    let has = |protection| host.has(protection);
    let ending = ending(&has, plan, ended.cause, told, oom_kills, &figures)
        .ok_or_else(|| failed("watch the sandbox", "it ended without saying how"))?;
    let work = ended.work.as_ref().unwrap_or(&slot.slot.work).as_fd();
    let placed: Vec<&InputFile> = plan.all_files().collect();
    let found = collect::collect(work, &collect_rule(host, plan), &placed);
    let ending = match ending {
        Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
        ending => ending,
    };
    let workspace = workspace::keep(work, plan, ending)?;
    let ending = match &workspace {
        Some(workspace) if workspace.refusal.is_some() => Ending::TooMuchForWorkspace,
        _ => ending,
    };
    Ok(StageOutcome {
        ending,
        figures,
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
        turned_away: ended.turned_away,
        start: slot.start,
        prepare_time: ended.prepare_time,
        collect_time: ended.at.elapsed(),
    })
}

/// Files are output too: without that wall all of them come back.
fn collect_rule(host: &Host, plan: &StagePlan) -> CollectRule {
    let rule = plan.collect.clone();
    if host.has(Protection::Output) {
        return rule;
    }
    CollectRule { total: ByteSize::bytes(u64::MAX), count: usize::MAX, ..rule }
}

/// Whether the kernel killed for want of memory although the sandbox was well within its own limit. Who reaches a limit has
/// a peak a few pages below it at most.
fn was_killed_within(limit: u64, oom_kills: u64, peak: Option<u64>) -> bool {
    oom_kills > 0 && peak.is_some_and(|peak| peak < limit - limit / 8)
}

/// The kernel's counters speak first, then our own acts, then what the program did itself.
/// `exit` is the code or the signal that it ended with.
pub(crate) fn ending(
    has: &dyn Fn(Protection) -> bool,
    plan: &StagePlan,
    cause: Option<Cause>,
    exit: Option<(Option<i32>, Option<i32>)>,
    oom_kills: u64,
    figures: &StageFigures,
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
    // It may have ended by itself between two looks at a clock that had already run out.
    let over = |kind, limit: Duration, used: Duration| (used > limit && has(kind)).then_some(());
    if over(Protection::WallTime, plan.limits.wall_time(), figures.wall_time).is_some() {
        return Some(Ending::TimedOut(TimeKind::Wall));
    }
    if let Some(limit) = plan.limits.cpu_time()
        && over(Protection::CpuTime, limit, figures.cpu_time()).is_some()
    {
        return Some(Ending::TimedOut(TimeKind::Cpu));
    }
    match exit {
        (Some(code), _) => Some(Ending::Exited(code)),
        (None, Some(signal)) => Some(Ending::Signaled(signal)),
        (None, None) => None,
    }
}

/// How long the program ran. The process beside it knows best when it began and ended; but it is our own clock that
/// lets it run out of time, and that one may have begun some milliseconds before on a busy machine.
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

fn figures(
    host: &Host,
    before: &Usage,
    after: &Usage,
    exit: Option<&ExitNotice>,
    wall_time: Duration,
) -> StageFigures {
    let none = ExitNotice::default();
    let told = exit.unwrap_or(&none);
    let (cpu_user, cpu_system) = cpu_times(host, before, after, told);
    let memory_peak_kb = match after.memory_peak {
        // The figure that the limit is held against: init and the slot are in it, with a few hundred KiB.
        Some(peak) => peak / 1024,
        None => told.max_rss_kib,
    };
    StageFigures {
        wall_time,
        cpu_user,
        cpu_system,
        memory_peak_kb,
        processes_peak: after.pids_peak.map_or(1, |peak| peak.saturating_sub(OWN_PROCESSES).max(1)),
        io_read_bytes: told.read_bytes,
        io_write_bytes: told.written_bytes,
    }
}

/// The cgroup knows the total exactly, also of processes that nobody waited for, but its split into
/// user and system is sampled by the tick. The split comes from what init was told at each wait.
fn cpu_times(
    host: &Host,
    before: &Usage,
    after: &Usage,
    told: &ExitNotice,
) -> (Duration, Duration) {
    let waited_for =
        (Duration::from_micros(told.user_micros), Duration::from_micros(told.system_micros));
    if !host.enforces.cpu_accounting {
        return waited_for;
    }
    // Init's own work is not the program's.
    let init = Duration::from_micros(told.init_user_micros + told.init_system_micros);
    let total = after.cpu_total.saturating_sub(before.cpu_total).saturating_sub(init);
    let ticks = |after: Option<Duration>, before: Option<Duration>| {
        after.unwrap_or_default().saturating_sub(before.unwrap_or_default())
    };
    let sampled =
        (ticks(after.cpu_user, before.cpu_user), ticks(after.cpu_system, before.cpu_system));
    let (user, system) =
        if waited_for.0 + waited_for.1 > Duration::ZERO { waited_for } else { sampled };
    // What no tick has seen is the program's own, as the kernel has it.
    let share = match (user + system).as_secs_f64() {
        0.0 => 1.0,
        both => user.as_secs_f64() / both,
    };
    let user = total.mul_f64(share.clamp(0.0, 1.0));
    (user, total.saturating_sub(user))
}

/// What came of a stage that was cancelled before there was a sandbox for it.
pub(crate) fn cancelled(plan: &StagePlan, waited: Duration) -> StageOutcome {
    let nothing = || WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
    StageOutcome {
        ending: Ending::Cancelled,
        figures: StageFigures::default(),
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
        turned_away: Vec::new(),
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
    fn who_runs_out_of_time_has_run_for_all_of_it() {
        let told = ExitNotice { wall_nanos: 988_000_000, ..ExitNotice::default() };
        let ours = Duration::from_millis(1001);
        let wall = Some(Cause::Time(TimeKind::Wall));
        assert_eq!(wall_time(wall, Some(&told), ours), ours);
        assert_eq!(wall_time(wall, None, ours), ours);
        assert_eq!(wall_time(None, Some(&told), ours), Duration::from_millis(988));
        let cpu = Some(Cause::Time(TimeKind::Cpu));
        assert_eq!(wall_time(cpu, Some(&told), ours), Duration::from_millis(988));
    }

    #[test]
    fn cpu_time_is_the_cgroups_total_less_inits_split_as_told() {
        let hierarchy = sandbox_linux::cgroup::Hierarchy::detect();
        let mut host = Host::probe(&NativeOptions::default(), hierarchy, &[]).unwrap();
        let told = ExitNotice {
            user_micros: 3000,
            system_micros: 1000,
            init_system_micros: 2000,
            ..ExitNotice::default()
        };
        host.enforces.cpu_accounting = true;
        let (user, system) = cpu_times(&host, &usage(10), &usage(20), &told);
        assert_eq!((user, system), (Duration::from_millis(6), Duration::from_millis(2)));
        host.enforces.cpu_accounting = false;
        let (user, system) = cpu_times(&host, &usage(10), &usage(20), &told);
        assert_eq!((user, system), (Duration::from_millis(3), Duration::from_millis(1)));
    }
}
