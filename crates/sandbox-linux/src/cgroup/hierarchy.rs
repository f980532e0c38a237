//! Detects which cgroups this host offers, by trying.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::locate::Locations;
use super::name;
use super::none::NoCgroup;
use super::v1::V1Hierarchy;
use super::v2::V2Hierarchy;
use super::{Cgroup, CgroupError, CgroupLimits, Enforces, OuterLimits, SweepOutcome};

/// The directory in which this process creates its cgroups.
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

/// The version of cgroups in use.
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
    /// Tries v2, then v1, each by creating a cgroup, limiting it and removing it again; uses no
    /// cgroups if neither works. No cgroup stays behind, with one exception that `v2/detect.rs`
    /// explains: if the rules of v2 leave no other way, this process moves into a
    /// `sandbox-run.supervisor` cgroup below the one it was started in. Hence, call this before
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

    /// A host without usable cgroups, for callers that choose to use none.
    pub fn none(reason: impl Into<String>) -> Hierarchy {
        Hierarchy { layout: Layout::None, reasons: vec![reason.into()] }
    }

    /// The detected version.
    pub fn version(&self) -> Version {
        match self.layout {
            Layout::V2(_) => Version::V2,
            Layout::V1(_) => Version::V1,
            Layout::None => Version::None,
        }
    }

    /// What the cgroups created here can enforce.
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

    /// What was tried and did not work, as sentences with the remedy. May be non-empty even if
    /// cgroups were found: why it is not v2, or which part is missing.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Creates a cgroup around all that are created here from now on, with these limits but no more
    /// memory than the parent cgroup has. It is removed with this value. Returns its limits.
    pub fn enclose(&mut self, limits: OuterLimits) -> Result<Option<OuterLimits>, CgroupError> {
        match &mut self.layout {
            Layout::V2(hierarchy) => hierarchy.enclose(limits).map(Some),
            Layout::V1(hierarchy) => hierarchy.enclose(limits).map(Some),
            Layout::None => Ok(None),
        }
    }

    /// Puts the cgroup around all that are created here into the background, or back. No effect
    /// without one, or where the kernel cannot do it.
    pub fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.set_background(is_background),
            Layout::V1(hierarchy) => hierarchy.set_background(is_background),
            Layout::None => Ok(()),
        }
    }

    /// Work for a thread that speeds up later attachments to cgroups where they can be slow.
    ///
    /// Under v1, the first process that is attached after some 15 ms without any waits for an RCU
    /// grace period, which takes 5 to 10 ms on an idle host; later ones take microseconds.
    /// Attaching this process to its current cgroup changes nothing and makes the kernel wait
    /// before a sandbox needs it.
    ///
    /// No cgroup can be created meanwhile. So the first one is created now, and `create` returns
    /// it: its sandbox can be built during the wait.
    pub fn attach_preparation(&self) -> Option<impl FnOnce() + Send + 'static> {
        match &self.layout {
            Layout::V1(hierarchy) => Some(hierarchy.attach_preparation()),
            // With v2 a process is cloned into its cgroup, without a wait.
            Layout::V2(_) | Layout::None => None,
        }
    }

    /// Creates a cgroup.
    pub fn create(&self) -> Result<Box<dyn Cgroup>, CgroupError> {
        match &self.layout {
            Layout::V2(hierarchy) => Ok(Box::new(hierarchy.create()?)),
            Layout::V1(hierarchy) => Ok(Box::new(hierarchy.create()?)),
            Layout::None => Ok(Box::new(NoCgroup)),
        }
    }

    /// The directories in which cgroups are created, innermost first.
    pub fn parents(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        match &self.layout {
            Layout::V2(hierarchy) => hierarchy.parents(),
            Layout::V1(hierarchy) => hierarchy.parents(),
            Layout::None => Ok(Vec::new()),
        }
    }

    /// Prefix of the names of all cgroups of this process.
    pub fn own_prefix() -> Result<String, CgroupError> {
        name::own_prefix()
    }

    /// Whether a name has the [`own_prefix`](Self::own_prefix) of a process that is dead.
    pub fn is_left_by_the_dead(name: &str) -> bool {
        name::Creator::of_cgroup(name).is_some_and(|creator| !creator.is_alive())
    }

    /// Removes the empty cgroups of dead supervisors. It kills nothing.
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

/// Tries everything that a run needs with a new cgroup, and removes it. The limits are arbitrary.
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
