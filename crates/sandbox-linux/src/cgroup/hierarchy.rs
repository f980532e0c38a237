//! Which cgroups this host offers, found out by trying.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::locate::Locations;
use super::name;
use super::none::NoCgroup;
use super::v1::V1Hierarchy;
use super::v2::V2Hierarchy;
use super::{Cgroup, CgroupError, CgroupLimits, Enforces, OuterLimits, SweepOutcome};

/// The place where this process makes its cgroups.
#[derive(Debug)]
pub struct Hierarchy {
    layout: Layout,
    reasons: Vec<String>,
}

#[derive(Debug)]
enum Layout {
    V2(V2Hierarchy),
    V1(V1Hierarchy),
    None,
}

/// Which generation of cgroups is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The unified hierarchy.
    V2,
    /// One hierarchy per controller.
    V1,
    /// No cgroups.
    None,
}

impl Hierarchy {
    /// Tries v2, then v1, each by making a cgroup, limiting it and removing it again, and settles
    /// for none when neither works. No cgroup stays behind, with one exception that
    /// `v2/detect.rs` explains: where the rules of v2 leave no other way, this process moves into
    /// a `sandbox-run.supervisor` cgroup below the one it was started in. Hence, call this before
    /// starting other processes.
    pub fn detect() -> Hierarchy {
        let mut reasons = Vec::new();
        let layout = match Locations::read() {
            Ok(locations) => Layout::detect(&locations, &mut reasons),
            Err(reason) => {
                reasons.push(reason);
                Layout::None
            }
        };
        Hierarchy { layout, reasons }
    }

    /// A host without usable cgroups, for callers who want to go without.
    pub fn none(reason: impl Into<String>) -> Hierarchy {
        Hierarchy { layout: Layout::None, reasons: vec![reason.into()] }
    }

    /// Which generation was found.
    pub fn version(&self) -> Version {
        match self.layout {
            Layout::V2(_) => Version::V2,
            Layout::V1(_) => Version::V1,
            Layout::None => Version::None,
        }
    }

    /// What the cgroups made here can do.
    pub fn enforces(&self) -> Enforces {
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.enforces(),
            Layout::V1(hierarchy) => hierarchy.enforces(),
            Layout::None => Enforces::default(),
        }
    }

    /// What was found, in one line for people.
    pub fn describe(&self) -> String {
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.describe(),
            Layout::V1(hierarchy) => hierarchy.describe(),
            Layout::None => "no cgroups: memory, processes and CPU time cannot be limited or \
                             counted for a sandbox as a whole"
                .to_owned(),
        }
    }

    /// Whatever was tried and did not work, as sentences with the remedy. There may be some even
    /// when cgroups were found: why it is not v2, or which part is missing.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Puts a cgroup around all that are made here from now on, with these limits but no more memory than the cgroup
    /// around that has. It goes with this value. Returns the limits that it has.
    pub fn enclose(&mut self, limits: OuterLimits) -> Result<Option<OuterLimits>, CgroupError> {
        match &mut self.layout {
            Layout::V2(hierarchy) => hierarchy.enclose(limits).map(Some),
            Layout::V1(hierarchy) => hierarchy.enclose(limits).map(Some),
            Layout::None => Ok(None),
        }
    }

    /// Work for a thread of its own that makes the next attachments to cgroups quick, where they can be slow.
    ///
    /// Under v1, the first process that is attached after some 15 ms without any waits for an RCU grace period, which
    /// takes 5 to 10 ms on an idle host; those after it take microseconds. Attaching this process to the cgroup
    /// that it is in changes nothing and has the kernel do that waiting before a sandbox needs it.
    pub fn attach_preparation(&self) -> Option<impl FnOnce() + Send + 'static> {
        match &self.layout {
            Layout::V1(hierarchy) => Some(hierarchy.attach_preparation()),
            // With v2 a process is cloned into its cgroup, and nobody waits.
            Layout::V2(_) | Layout::None => None,
        }
    }

    /// Makes one fresh cgroup.
    pub fn create(&self) -> Result<Box<dyn Cgroup>, CgroupError> {
        match &self.layout {
            Layout::V2(hierarchy) => Ok(Box::new(hierarchy.create()?)),
            Layout::V1(hierarchy) => Ok(Box::new(hierarchy.create()?)),
            Layout::None => Ok(Box::new(NoCgroup)),
        }
    }

    /// The directories in which cgroups are made, the innermost first.
    pub fn parents(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.parents(),
            Layout::V1(hierarchy) => hierarchy.parents(),
            Layout::None => Ok(Vec::new()),
        }
    }

    /// How the names of all cgroups that this process makes begin.
    pub fn own_prefix() -> Result<String, CgroupError> {
        name::own_prefix()
    }

    /// Whether a name is one that [`own_prefix`](Self::own_prefix) begins, of a process that is gone.
    pub fn is_left_by_the_dead(name: &str) -> bool {
        name::Creator::of_cgroup(name).is_some_and(|creator| !creator.is_alive())
    }

    /// Removes the empty cgroups of supervisors that are dead. It kills nobody.
    pub fn sweep(&self) -> SweepOutcome {
        let mut outcome = SweepOutcome::default();
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.sweep(&mut outcome),
            Layout::V1(hierarchy) => hierarchy.sweep(&mut outcome),
            Layout::None => {}
        }
        outcome
    }
}

impl Layout {
    fn detect(locations: &Locations, reasons: &mut Vec<String>) -> Layout {
        if let Some(hierarchy) = V2Hierarchy::detect(locations, reasons) {
            return Layout::V2(hierarchy);
        }
        match V1Hierarchy::detect(locations, reasons) {
            Some(hierarchy) => Layout::V1(hierarchy),
            None => Layout::None,
        }
    }
}

/// Does once with a new cgroup what a run will do, and removes it. The limits are arbitrary.
pub(crate) fn exercise(cgroup: &dyn Cgroup, enforces: Enforces) -> Result<(), CgroupError> {
    let limits =
        CgroupLimits { memory_bytes: Some(64 << 20), pids: Some(16), cpu_millis: Some(500) };
    cgroup.set_limits(&limits.enforceable_by(enforces))?;
    cgroup.entry()?;
    cgroup.reset_peak()?;
    cgroup.usage()?;
    cgroup.oom_watch()?;
    cgroup.kill()?;
    cgroup.remove()
}

/// Whether the host has no swap now, so that a memory limit cannot be evaded by swapping.
pub(crate) fn host_has_no_swap() -> bool {
    // The first line is a heading. A kernel built without swap has no such file.
    match std::fs::read_to_string("/proc/swaps") {
        Ok(text) => text.lines().count() <= 1,
        Err(error) => error.raw_os_error() == Some(Errno::NOENT.raw_os_error()),
    }
}
