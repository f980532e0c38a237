//! The time limits of a program, and of its start.

use std::time::{Duration, Instant};

use sandbox_core::ProcessLimits;

/// Maximum time to build a sandbox and start its program.
pub(crate) const BUILD_TIMEOUT: Duration = Duration::from_secs(30);
/// Minimum interval between reads of the CPU time counter.
const MIN_CPU_CHECK_INTERVAL: Duration = Duration::from_millis(2);

pub(super) struct Clocks {
    limits: ProcessLimits,
    cpus: f64,
    /// When the program must have started, then when it must have ended.
    deadline: Option<Instant>,
    next_cpu_check: Option<Instant>,
}

impl Clocks {
    pub(super) fn new(limits: ProcessLimits, cpus: f64, now: Instant) -> Self {
        Self { limits, cpus, deadline: Some(now + BUILD_TIMEOUT), next_cpu_check: None }
    }

    /// The program has started.
    pub(super) fn start(&mut self, started: Instant) {
        self.deadline = self.limits.wall_time.map(|limit| started + limit);
        self.next_cpu_check = self.limits.cpu_time.map(|limit| started + self.cpu_delay(limit));
    }

    /// When to check again.
    pub(super) fn next(&self) -> impl Iterator<Item = Instant> {
        self.deadline.into_iter().chain(self.next_cpu_check)
    }

    /// Whether the program should have started, or ended, by now.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether the program has used up its CPU time, if it is time to check.
    pub(super) fn exceeds_cpu_time(
        &mut self,
        now: Instant,
        used: impl FnOnce() -> Duration,
    ) -> bool {
        let (Some(at), Some(limit)) = (self.next_cpu_check, self.limits.cpu_time) else {
            return false;
        };
        if at > now {
            return false;
        }
        let left = limit.saturating_sub(used());
        self.next_cpu_check = Some(now + self.cpu_delay(left));
        left.is_zero()
    }

    /// The earliest time until the remaining CPU time can be used up.
    fn cpu_delay(&self, left: Duration) -> Duration {
        left.div_f64(self.cpus.max(1.0)).max(MIN_CPU_CHECK_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn cpu_time_is_read_when_it_can_be_used_up_at_the_earliest() {
        let limits = ProcessLimits { wall_time: None, cpu_time: Some(seconds(4)), output_bytes: 0 };
        let now = Instant::now();
        let mut clocks = Clocks::new(limits, 2.0, now);
        assert!(clocks.is_late(now + BUILD_TIMEOUT));
        clocks.start(now);
        assert!(!clocks.is_late(now + BUILD_TIMEOUT), "it has started, and may run for ever");
        assert_eq!(clocks.next().collect::<Vec<_>>(), [now + seconds(2)]);
        let too_early = || unreachable!("it cannot be used up yet");
        assert!(!clocks.exceeds_cpu_time(now + seconds(1), too_early));
        assert!(!clocks.exceeds_cpu_time(now + seconds(2), || seconds(2)));
        assert_eq!(clocks.next().collect::<Vec<_>>(), [now + seconds(3)]);
        assert!(clocks.exceeds_cpu_time(now + seconds(3), || seconds(4)));
    }
}
