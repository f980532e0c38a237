//! The limits of a cgroup, and which of them this host enforces.

use super::CgroupError;

/// The bandwidth period of the CPU controller, which is also the kernel's default.
pub(crate) const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// The kernel accepts no CPU quota below one millisecond a period, which is a hundredth of a CPU.
const MIN_CPU_MILLIS: u32 = 10;

/// The kernel has no more PIDs than this and refuses a higher limit.
const MAX_PROCESSES: u64 = 4_194_304;

/// The limits of one cgroup. `None` leaves a resource unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Memory in bytes, page cache and tmpfs included. Swap is not available beyond it.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub pids: Option<u64>,
    /// CPU bandwidth, in thousandths of a CPU: 1000 is one CPU.
    pub cpu_millis: Option<u32>,
}

impl CgroupLimits {
    /// The same with this much more memory, for what is in the cgroup besides the program.
    #[must_use]
    pub fn with_more_memory(self, bytes: u64) -> CgroupLimits {
        let memory_bytes = self.memory_bytes.map(|limit| limit.saturating_add(bytes));
        CgroupLimits { memory_bytes, ..self }
    }

    /// The part of these limits that a host with those abilities can enforce. By calling this, a
    /// caller accepts to run without the rest.
    #[must_use]
    pub fn enforceable_by(&self, enforces: Enforces) -> CgroupLimits {
        CgroupLimits {
            memory_bytes: self.memory_bytes.filter(|_| enforces.memory),
            pids: self.pids.filter(|_| enforces.pids),
            cpu_millis: self.cpu_millis.filter(|_| enforces.cpu_quota),
        }
    }

    /// Refuses limits that cannot be applied, before any of them is applied.
    pub(crate) fn check(&self, enforces: Enforces) -> Result<(), CgroupError> {
        let beyond = [
            ("a memory limit", self.memory_bytes.is_some() && !enforces.memory),
            ("a limit on processes", self.pids.is_some() && !enforces.pids),
            ("a CPU quota", self.cpu_millis.is_some() && !enforces.cpu_quota),
        ];
        let beyond: Vec<&str> =
            beyond.iter().filter(|(_, missing)| *missing).map(|(what, _)| *what).collect();
        if !beyond.is_empty() {
            return Err(CgroupError::NotEnforced { what: beyond.join(" or ") });
        }
        match self.cpu_millis {
            Some(millis) if millis < MIN_CPU_MILLIS => Err(CgroupError::LimitTooLow {
                limit: "the CPU, in thousandths,",
                value: millis.into(),
                least: MIN_CPU_MILLIS.into(),
            }),
            _ => Ok(()),
        }
    }

    /// The limit on processes, lowered to the kernel's maximum.
    pub(crate) fn pids_for_kernel(&self) -> Option<u64> {
        self.pids.map(|pids| pids.min(MAX_PROCESSES))
    }

    /// The CPU time allowed in one period.
    pub(crate) fn quota_microseconds(&self) -> Option<u64> {
        self.cpu_millis.map(|millis| u64::from(millis) * CPU_PERIOD_MICROSECONDS / 1000)
    }
}

/// What the cgroups of this host can do.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a table of independent abilities, each a yes or a no"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Enforces {
    /// Memory can be limited.
    pub memory: bool,
    /// A memory limit cannot be evaded by swapping: swap is limited too, or the host had none at
    /// detection.
    pub swap_off: bool,
    /// The number of processes and threads can be limited.
    pub pids: bool,
    /// CPU bandwidth can be limited.
    pub cpu_quota: bool,
    /// CPU time is counted for the whole cgroup.
    pub cpu_accounting: bool,
    /// Peak memory is recorded.
    pub memory_peak: bool,
    /// The peak number of processes is recorded.
    pub pids_peak: bool,
    /// OOM kills are counted and announced.
    pub oom_events: bool,
    /// Every member can be listed and killed.
    pub kill: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: CgroupLimits =
        CgroupLimits { memory_bytes: Some(1 << 20), pids: Some(u64::MAX), cpu_millis: Some(250) };

    #[test]
    fn a_limit_that_cannot_be_enforced_is_refused_by_name() {
        let enforces = Enforces { memory: true, ..Enforces::default() };
        let error = ALL.check(enforces).unwrap_err().to_string();
        assert!(error.contains("a limit on processes or a CPU quota"), "{error}");
        assert!(!error.contains("memory"), "{error}");
        ALL.enforceable_by(enforces).check(enforces).unwrap();
    }

    #[test]
    fn a_quota_the_kernel_would_refuse_is_refused_with_the_least_that_works() {
        let enforces = Enforces { cpu_quota: true, ..Enforces::default() };
        for (millis, accepted) in [(0, false), (9, false), (10, true)] {
            let limits = CgroupLimits { cpu_millis: Some(millis), ..CgroupLimits::default() };
            assert_eq!(limits.check(enforces).is_ok(), accepted, "{millis}");
        }
    }

    #[test]
    fn limits_are_put_into_the_units_of_the_kernel() {
        assert_eq!(ALL.quota_microseconds(), Some(25_000));
        assert_eq!(ALL.pids_for_kernel(), Some(4_194_304));
        assert_eq!(CgroupLimits::default().quota_microseconds(), None);
    }
}
