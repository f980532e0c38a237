//! The directory in the v2 hierarchy in which cgroups are created.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::super::file::Directory;
use super::super::group::Group;
use super::super::hierarchy::{exercise, host_has_no_swap};
use super::super::outer::limits_above;
use super::super::{
    CgroupError, Enforces, OuterLimits, SweepOutcome, background, oom, parse, sweep,
};
use super::cgroup::V2Cgroup;

/// The group directly below the root for cgroups if this process's own may not be used.
pub(crate) const TOP_LEVEL_GROUP: &str = "sandbox-run";

/// The file that lists which controllers the children of a directory get.
pub(crate) const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// How often creation is tried while other processes remove the empty group around it.
const MAX_ATTEMPTS: usize = 5;

/// The directory in which cgroups are created.
#[derive(Debug)]
pub(crate) enum Base {
    /// A directory that exists as long as this process.
    Lasting(Arc<Directory>),
    /// [`TOP_LEVEL_GROUP`] in this root: created when needed, removed when empty.
    TopLevel(Directory),
}

/// The v2 hierarchy in use.
#[derive(Debug)]
pub(crate) struct V2Hierarchy {
    base: Base,
    /// The cgroup around all others, which is removed with this value.
    outer: Option<Group>,
    enforces: Enforces,
}

impl V2Hierarchy {
    /// Uses a base if cgroups with limits can be created in it.
    pub(crate) fn try_out(base: Base) -> Result<V2Hierarchy, CgroupError> {
        let mut hierarchy = V2Hierarchy { base, outer: None, enforces: Enforces::default() };
        let outcome = hierarchy.find_abilities().and_then(|()| {
            if !hierarchy.enforces.memory || !hierarchy.enforces.pids {
                return Err(CgroupError::NotEnforced { what: "memory and processes".to_owned() });
            }
            exercise(&hierarchy.create()?, hierarchy.enforces)
        });
        hierarchy.remove_empty_base();
        outcome.map(|()| hierarchy)
    }

    /// A base as it is, even without controllers.
    #[cfg(test)]
    pub(crate) fn without_demands(directory: Directory) -> Result<V2Hierarchy, CgroupError> {
        let base = Base::Lasting(Arc::new(directory));
        let mut hierarchy = V2Hierarchy { base, outer: None, enforces: Enforces::default() };
        hierarchy.find_abilities()?;
        Ok(hierarchy)
    }

    fn find_abilities(&mut self) -> Result<(), CgroupError> {
        let sample = self.make_group()?;
        let directory = sample.directory(0);
        let memory = directory.has("memory.max");
        self.enforces = Enforces {
            memory,
            swap_off: memory && (directory.has("memory.swap.max") || host_has_no_swap()),
            pids: directory.has("pids.max"),
            cpu_quota: directory.has("cpu.max"),
            // The kernel counts CPU time here even when the cpu controller is off.
            cpu_accounting: directory.has("cpu.stat"),
            memory_peak: directory.has("memory.peak"),
            pids_peak: directory.has("pids.peak"),
            oom_events: oom::are_counted(directory, "memory.events"),
            kill: true,
        };
        sample.remove()
    }

    pub(crate) fn enforces(&self) -> Enforces {
        self.enforces
    }

    pub(crate) fn describe(&self) -> String {
        let place = match &self.base {
            Base::Lasting(directory) => directory.path().to_owned(),
            Base::TopLevel(root) => root.path().join(TOP_LEVEL_GROUP),
        };
        format!("cgroup v2 below {}", place.display())
    }

    pub(crate) fn parents(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let base = self.base.open()?.duplicate()?;
        let outer = self.outer.iter().map(|outer| outer.directory(0).duplicate());
        outer.chain([Ok(base)]).collect()
    }

    pub(crate) fn enclose(&mut self, limits: OuterLimits) -> Result<OuterLimits, CgroupError> {
        let outer = self.make_group()?;
        let directory = outer.directory(0);
        let limits = limits.within(limits_above(outer.parent(0).path(), "memory.max"));
        // It has no members, so it may pass controllers on to its children.
        enable_controllers(directory)?;
        directory.write("memory.max", &limits.memory_bytes.to_string())?;
        directory.write("pids.max", &limits.pids.to_string())?;
        self.outer = Some(outer);
        Ok(limits)
    }

    /// Puts all cgroups that are created here into the background, or back.
    pub(crate) fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        let outer = self.outer.as_ref();
        outer.map_or(Ok(()), |outer| background::set(outer.directory(0), is_background))
    }

    pub(crate) fn create(&self) -> Result<V2Cgroup, CgroupError> {
        V2Cgroup::prepare(self.make_group()?, self.enforces)
    }

    fn make_group(&self) -> Result<Group, CgroupError> {
        if let Some(outer) = &self.outer {
            return Group::make(&outer.directories());
        }
        for _ in 1..MAX_ATTEMPTS {
            match self.base.open().and_then(|base| Group::make(&[base])) {
                Err(error) if error.errno() == Some(Errno::NOENT) => {}
                outcome => return outcome,
            }
        }
        self.base.open().and_then(|base| Group::make(&[base]))
    }

    pub(crate) fn sweep(&self, outcome: &mut SweepOutcome) {
        match &self.base {
            Base::Lasting(directory) => sweep::sweep_directory(directory, outcome),
            Base::TopLevel(root) => {
                if let Ok(directory) = root.open_child(TOP_LEVEL_GROUP) {
                    sweep::sweep_directory(&directory, outcome);
                }
                outcome.removed.extend(self.remove_empty_base());
            }
        }
    }

    /// Removes the top-level group unless it has children, which the kernel checks.
    fn remove_empty_base(&self) -> Option<String> {
        let Base::TopLevel(root) = &self.base else {
            return None;
        };
        root.remove_child(TOP_LEVEL_GROUP).ok()?;
        Some(root.path().join(TOP_LEVEL_GROUP).display().to_string())
    }
}

impl Drop for V2Hierarchy {
    fn drop(&mut self) {
        drop(self.outer.take());
        self.remove_empty_base();
    }
}

impl Base {
    /// The directory, ready for cgroups with controllers.
    fn open(&self) -> Result<Arc<Directory>, CgroupError> {
        let root = match self {
            Base::Lasting(directory) => return Ok(Arc::clone(directory)),
            Base::TopLevel(root) => root,
        };
        let directory = match root.open_child(TOP_LEVEL_GROUP) {
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                enable_controllers(root)?;
                match root.make_child(TOP_LEVEL_GROUP) {
                    Err(error) if error.errno() == Some(Errno::EXIST) => {
                        root.open_child(TOP_LEVEL_GROUP)?
                    }
                    outcome => outcome?,
                }
            }
            outcome => outcome?,
        };
        enable_controllers(&directory)?;
        Ok(Arc::new(directory))
    }
}

/// Enables the required controllers for the children of a directory. They stay enabled: the host's
/// other cgroups are not affected, and disabling would take them from other users.
pub(crate) fn enable_controllers(directory: &Directory) -> Result<(), CgroupError> {
    let enabled = directory.read(SUBTREE_CONTROL)?;
    for (controller, required) in [("memory", true), ("pids", true), ("cpu", false), ("io", false)]
    {
        if parse::lists(&enabled, controller) {
            continue;
        }
        let outcome = directory.write(SUBTREE_CONTROL, &format!("+{controller}"));
        if required {
            outcome?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::fs::{AtFlags, Mode, OFlags};
    use rustix::process::{Pid, WaitOptions};

    use super::super::super::conformance::skip;
    use super::super::super::locate::Locations;
    use super::super::super::{Cgroup, CgroupLimits, Entry};
    use super::*;

    /// A cgroup in the v2 hierarchy, with whatever controllers it has there: on a host that uses
    /// v1 none. Nothing, out loud, where there is no such hierarchy or it is not ours to use.
    fn bare_cgroup() -> Option<(V2Hierarchy, V2Cgroup)> {
        let place = Locations::read().unwrap().v2().map_err(|reason| skip(&reason)).ok()?;
        match V2Hierarchy::without_demands(Directory::open(&place.own).unwrap()) {
            Ok(hierarchy) => {
                let cgroup = hierarchy.create().unwrap();
                Some((hierarchy, cgroup))
            }
            Err(error) if matches!(error.errno(), Some(Errno::ACCESS | Errno::ROFS)) => {
                skip(&error.in_full());
                None
            }
            Err(error) => panic!("{}", error.in_full()),
        }
    }

    /// Kills what a failed test has left in the cgroup, so that it can be removed.
    struct Emptied<'a>(&'a V2Cgroup);

    impl Drop for Emptied<'_> {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.remove();
        }
    }

    fn clone_into(cgroup: &OwnedFd) -> Pid {
        // libc's own constant is about to change its type, and warns of it.
        const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
        let arguments = libc::clone_args {
            flags: CLONE_INTO_CGROUP,
            exit_signal: libc::SIGCHLD as u64,
            cgroup: u64::try_from(cgroup.as_raw_fd()).unwrap(),
            ..zeroed_clone_args()
        };
        // SAFETY: clone3 wants a pointer to clone_args and its size. Without CLONE_VM the child has
        // its own copy of the memory and goes on below; it calls nothing but pause, which is
        // async-signal-safe, so locks held by other threads at the time of the call do not matter.
        let process = unsafe {
            libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments))
        };
        if process == 0 {
            loop {
                // SAFETY: pause has no arguments and no demands.
                unsafe { libc::pause() };
            }
        }
        assert!(process > 0, "clone3: {}", std::io::Error::last_os_error());
        Pid::from_raw(i32::try_from(process).unwrap()).unwrap()
    }

    fn zeroed_clone_args() -> libc::clone_args {
        // SAFETY: clone_args is a struct of integers, for which all bits zero is a value.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn a_process_cloned_into_a_cgroup_is_counted_killed_and_gone() {
        let Some((_, cgroup)) = bare_cgroup() else {
            return;
        };
        let emptied = Emptied(&cgroup);
        let Entry::CloneInto(directory) = cgroup.entry().unwrap() else { panic!("not v2") };
        let process = clone_into(&directory);
        let number = u32::try_from(process.as_raw_nonzero().get()).unwrap();
        assert_eq!(cgroup.processes().unwrap(), [number]);

        cgroup.kill().unwrap();
        assert!(cgroup.processes().unwrap().is_empty());
        let (_, status) =
            rustix::process::waitpid(Some(process), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.terminating_signal(), Some(libc::SIGKILL));

        let removal = cgroup.removal().unwrap().pop().unwrap();
        cgroup.remove().unwrap();
        let gone = rustix::fs::openat(
            &removal.parent,
            &removal.name,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        );
        assert_eq!(gone.unwrap_err(), Errno::NOENT);
        drop(emptied);
    }

    #[test]
    fn a_kernel_without_cgroup_kill_is_served_by_the_loop() {
        let Some((_, cgroup)) = bare_cgroup() else {
            return;
        };
        let _emptied = Emptied(&cgroup);
        let Entry::CloneInto(directory) = cgroup.entry().unwrap() else { panic!("not v2") };
        let process = clone_into(&directory);
        cgroup.kill_by_hand().unwrap();
        let (_, status) =
            rustix::process::waitpid(Some(process), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.terminating_signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_limit_without_its_controller_is_refused() {
        let Some((hierarchy, cgroup)) = bare_cgroup() else {
            return;
        };
        let all =
            CgroupLimits { memory_bytes: Some(1 << 26), pids: Some(9), cpu_millis: Some(100) };
        let enforces = hierarchy.enforces();
        assert_eq!(
            cgroup.set_limits(&all).is_ok(),
            enforces.memory && enforces.pids && enforces.cpu_quota
        );
        cgroup.set_limits(&all.enforceable_by(enforces)).unwrap();
        assert_eq!(cgroup.usage().unwrap().memory_peak.is_some(), enforces.memory_peak);
    }

    #[test]
    fn a_removal_by_another_process_is_no_error() {
        let Some((_, cgroup)) = bare_cgroup() else {
            return;
        };
        let removal = cgroup.removal().unwrap().pop().unwrap();
        rustix::fs::unlinkat(&removal.parent, &removal.name, AtFlags::REMOVEDIR).unwrap();
        cgroup.remove().unwrap();
    }
}
