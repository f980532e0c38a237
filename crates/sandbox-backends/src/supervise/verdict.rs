//! The outcome of a program, from what the supervisor observed: how it ended, and what it used.

use std::time::Duration;

use sandbox_core::{Ending, StageOutcome, StageUsage, Start, TimeKind};
use sandbox_linux::cgroup::Usage;
use sandbox_linux::collect::Collected;
use sandbox_protocol::notice::ExitNotice;

use super::{Cause, Counters, Ended};

impl Ended {
    /// Determines the ending: kernel counters first, then the supervisor's own actions, then the
    /// program's exit. `None` if nothing shows how it ended.
    pub(crate) fn ending(&self, oom_kills: u64, usage: &StageUsage) -> Option<Ending> {
        if oom_kills > 0 {
            return Some(Ending::OutOfMemory);
        }
        match self.cause {
            Some(Cause::Time(kind)) => return Some(Ending::TimedOut(kind)),
            Some(Cause::Memory) => return Some(Ending::OutOfMemory),
            Some(Cause::Output) => return Some(Ending::TooMuchOutput),
            Some(Cause::Cancelled) => return Some(Ending::Cancelled),
            None => {}
        }
        let exit = self.exit.as_ref()?;
        // It may have exited between two checks of a limit that was already exceeded.
        let over = |limit: Option<Duration>, used| limit.is_some_and(|limit| used > limit);
        if over(self.limits.wall_time, usage.wall_time) {
            return Some(Ending::TimedOut(TimeKind::Wall));
        }
        if over(self.limits.cpu_time, usage.cpu_time()) {
            return Some(Ending::TimedOut(TimeKind::Cpu));
        }
        exit.code.map(Ending::Exited).or(exit.signal.map(Ending::Signaled))
    }

    /// How long the program ran. Init measures start and end most precisely; but the wall-clock
    /// limit is enforced by the supervisor's clock, which may start some milliseconds earlier on a
    /// busy machine.
    pub(crate) fn wall_time(&self) -> Duration {
        match &self.exit {
            Some(exit) if self.cause != Some(Cause::Time(TimeKind::Wall)) => {
                Duration::from_nanos(exit.wall_nanos)
            }
            _ => self.run_time,
        }
    }

    /// What the program used, by the counters of its cgroup as they are `after` it.
    pub(crate) fn usage(&self, counters: &Counters<'_>, after: &Usage) -> StageUsage {
        let none = ExitNotice::default();
        let notice = self.exit.as_ref().unwrap_or(&none);
        let (cpu_user, cpu_system) = cpu_times(counters.before, after, notice);
        // The counter that the limit applies to; it includes a few hundred KiB of init and the
        // sandbox.
        let memory_peak = after.memory_peak.map(|peak| peak.saturating_sub(counters.own_memory));
        let processes = counters.own_processes.zip(after.pids_peak);
        let processes = processes.map(|(own, peak)| peak.saturating_sub(own));
        StageUsage {
            wall_time: self.wall_time(),
            cpu_user,
            cpu_system,
            memory_peak_kb: memory_peak.map_or(notice.max_rss_kib, |peak| peak / 1024),
            processes_peak: processes.unwrap_or(1).max(1),
            io_read_bytes: notice.read_bytes,
            io_write_bytes: notice.written_bytes,
        }
    }

    /// The outcome of a stage that left these files, without what the backend adds.
    pub(crate) fn into_outcome(
        self,
        ending: Ending,
        usage: StageUsage,
        found: Collected,
    ) -> StageOutcome {
        let ending = match ending {
            Ending::Exited(_) | Ending::Signaled(_) if found.over_limit => Ending::TooManyFiles,
            ending => ending,
        };
        StageOutcome {
            usage,
            files: found.files,
            skipped: found.skipped,
            collect_time: self.at.elapsed(),
            stdout: self.output.stdout,
            stderr: self.output.stderr,
            output: self.output.both,
            stdout_truncated: self.output.stdout_truncated,
            stderr_truncated: self.output.stderr_truncated,
            violations: self.violations,
            ..without_program(ending)
        }
    }
}

/// The outcome of a stage that ended before its program started.
pub(crate) fn without_program(ending: Ending) -> StageOutcome {
    StageOutcome {
        ending,
        usage: StageUsage::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        output: Vec::new(),
        stdout_truncated: false,
        stderr_truncated: false,
        files: Vec::new(),
        skipped: Vec::new(),
        workspace: None,
        enforced: Vec::new(),
        violations: Vec::new(),
        network: None,
        proxy_refusals: Vec::new(),
        start: Start::Cold,
        prepare_time: Duration::ZERO,
        collect_time: Duration::ZERO,
    }
}

/// User and system time. The cgroup's total is exact and includes processes that were never reaped,
/// but its split is sampled by the timer tick. The split is taken from what init or the agent got
/// for each reaped process.
fn cpu_times(before: &Usage, after: &Usage, notice: &ExitNotice) -> (Duration, Duration) {
    let waited_for =
        (Duration::from_micros(notice.user_micros), Duration::from_micros(notice.system_micros));
    if after.cpu_total.is_zero() {
        // No cgroup counts CPU time.
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use sandbox_core::ProcessLimits;

    use super::super::CapturedOutput;
    use super::*;

    fn ended(cause: Option<Cause>, exit: Option<ExitNotice>) -> Ended {
        let second = Some(Duration::from_secs(1));
        Ended {
            limits: ProcessLimits { wall_time: second, cpu_time: second, output_bytes: 0 },
            exit,
            cause,
            output: CapturedOutput::new(0),
            violations: Vec::new(),
            started: Instant::now(),
            run_time: Duration::from_millis(1001),
            at: Instant::now(),
        }
    }

    fn usage(cpu_millis: u64) -> Usage {
        Usage { cpu_total: Duration::from_millis(cpu_millis), ..Usage::default() }
    }

    #[test]
    fn a_timed_out_program_has_run_for_the_whole_limit() {
        let notice = ExitNotice { wall_nanos: 988_000_000, ..ExitNotice::default() };
        let (ours, precise) = (Duration::from_millis(1001), Duration::from_millis(988));
        let wall = Some(Cause::Time(TimeKind::Wall));
        assert_eq!(ended(wall, Some(notice)).wall_time(), ours);
        assert_eq!(ended(wall, None).wall_time(), ours);
        assert_eq!(ended(None, Some(notice)).wall_time(), precise);
        let cpu = Some(Cause::Time(TimeKind::Cpu));
        assert_eq!(ended(cpu, Some(notice)).wall_time(), precise);
    }

    #[test]
    fn counters_come_before_causes_and_causes_before_the_exit() {
        let exit = || Some(ExitNotice { code: Some(3), ..ExitNotice::default() });
        let used = StageUsage::default();
        let cancelled = ended(Some(Cause::Cancelled), exit());
        assert_eq!(cancelled.ending(1, &used), Some(Ending::OutOfMemory));
        assert_eq!(cancelled.ending(0, &used), Some(Ending::Cancelled));
        assert_eq!(ended(None, exit()).ending(0, &used), Some(Ending::Exited(3)));
        assert_eq!(ended(None, None).ending(0, &used), None);
        let long = StageUsage { cpu_user: Duration::from_secs(2), ..used };
        let late = ended(None, exit()).ending(0, &long);
        assert_eq!(late, Some(Ending::TimedOut(TimeKind::Cpu)));
    }

    #[test]
    fn cpu_time_is_the_cgroups_total_without_init_in_the_reported_split() {
        let notice = ExitNotice {
            user_micros: 3000,
            system_micros: 1000,
            init_system_micros: 2000,
            ..ExitNotice::default()
        };
        let (user, system) = cpu_times(&usage(10), &usage(20), &notice);
        assert_eq!((user, system), (Duration::from_millis(6), Duration::from_millis(2)));
        let (user, system) = cpu_times(&usage(0), &usage(0), &notice);
        assert_eq!((user, system), (Duration::from_millis(3), Duration::from_millis(1)));
    }
}
