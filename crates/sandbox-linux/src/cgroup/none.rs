//! No cgroups: for hosts that offer none to this process. It counts nothing and refuses what it
//! cannot enforce, so that a caller has to accept missing limits explicitly.

use std::time::Duration;

use super::{Cgroup, CgroupError, CgroupLimits, Enforces, Entry, OomWatch, Removal, Usage};

/// Takes the place of a cgroup.
#[derive(Debug)]
pub(crate) struct NoCgroup;

impl Cgroup for NoCgroup {
    fn entry(&self) -> Result<Entry, CgroupError> {
        Ok(Entry::Nothing)
    }

    fn set_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        limits.check(Enforces::default())
    }

    fn reset_peak(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn usage(&self) -> Result<Usage, CgroupError> {
        Ok(Usage::default())
    }

    fn tasks(&self) -> Result<u64, CgroupError> {
        Ok(0)
    }

    fn cpu_total(&self) -> Result<Duration, CgroupError> {
        Ok(Duration::ZERO)
    }

    fn oom_kills(&self) -> Result<u64, CgroupError> {
        Ok(0)
    }

    fn oom_watch(&self) -> Result<Option<OomWatch>, CgroupError> {
        Ok(None)
    }

    fn path_for_runtimes(&self) -> Option<String> {
        None
    }

    fn make_child(&self, _name: &str) -> Result<Box<dyn Cgroup>, CgroupError> {
        Ok(Box::new(Self))
    }

    fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        Ok(Vec::new())
    }

    /// An error, not a silent success: the caller has to kill by other means, such as the first
    /// process of the sandbox's PID namespace.
    fn kill(&self) -> Result<(), CgroupError> {
        Err(CgroupError::NotEnforced { what: "the end of every process".to_owned() })
    }

    fn removal(&self) -> Result<Vec<Removal>, CgroupError> {
        Ok(Vec::new())
    }

    fn remove(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn dissolve(self: Box<Self>) -> Result<(), CgroupError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_accepted_but_no_limits_are() {
        let one_of_each = [
            CgroupLimits { memory_bytes: Some(1 << 30), ..CgroupLimits::default() },
            CgroupLimits { pids: Some(1), ..CgroupLimits::default() },
            CgroupLimits { cpu_millis: Some(1000), ..CgroupLimits::default() },
        ];
        for limits in one_of_each {
            assert!(NoCgroup.set_limits(&limits).is_err(), "{limits:?}");
            NoCgroup.set_limits(&limits.enforceable_by(Enforces::default())).unwrap();
        }
        assert!(NoCgroup.kill().is_err());
        assert!(matches!(NoCgroup.entry(), Ok(Entry::Nothing)));
    }
}
