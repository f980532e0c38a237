//! The delays before retries.

use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

/// A receiver that restarts is back after the first delays, one that people repair after the last.
const DEFAULT_DELAYS: [Duration; 6] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_hours(1),
    Duration::from_hours(6),
];

/// The delay after each failed attempt. After the last the callback is given up.
#[derive(Clone, Debug)]
pub(super) struct RetrySchedule(Vec<Duration>);

impl RetrySchedule {
    #[cfg(test)]
    pub(super) fn new(delays: impl Into<Vec<Duration>>) -> Self {
        Self(delays.into())
    }

    /// The delay after a failed attempt that was preceded by this number of failures.
    pub(super) fn after(&self, failed_before: u32) -> Option<Duration> {
        let delay = self.0.get(usize::try_from(failed_before).ok()?)?;
        Some(spread(*delay, random()))
    }
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self(DEFAULT_DELAYS.into())
    }
}

/// Spreads a delay by 20 % either way, so that what failed together is not retried together.
fn spread(delay: Duration, random: u16) -> Duration {
    delay.mul_f64(0.8 + 0.4 * f64::from(random) / f64::from(u16::MAX))
}

fn random() -> u16 {
    let mut bytes = [0; 2];
    // Without random numbers all delays are equally spread, which is harmless.
    let _ = getrandom(&mut bytes, GetRandomFlags::empty());
    u16::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_but_the_last_is_followed_by_a_longer_wait() {
        let schedule = RetrySchedule::default();
        let delays: Vec<_> = (0..).map_while(|failed| schedule.after(failed)).collect();
        assert_eq!(delays.len(), DEFAULT_DELAYS.len());
        assert!(delays.is_sorted(), "{delays:?}");
        assert_eq!(schedule.after(u32::MAX), None);
    }

    #[test]
    fn a_delay_is_spread_around_what_it_is() {
        let delay = Duration::from_secs(10);
        assert_eq!(spread(delay, 0), Duration::from_secs(8));
        assert_eq!(spread(delay, u16::MAX), Duration::from_secs(12));
        assert_eq!(spread(Duration::ZERO, u16::MAX), Duration::ZERO);
    }
}
