//! What this host can hold, found by trying, and what was left out on purpose.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustix::io::Errno;
use sandbox_core::{
    BackendError, Capabilities, MissingProtection, NetworkPolicy, Protection, StagePlan,
    TogetherLimits,
};
use sandbox_linux::cgroup::{CgroupLimits, Enforces, Hierarchy, OuterLimits};
use sandbox_linux::rlimits::Shared;
use sandbox_linux::seccomp::{Arch, DeniedAction, Notification, Profile, Program, Verdict};
use sandbox_linux::skeleton::Shown;
use sandbox_linux::{Walls, container_inodes, ids, landlock};

use super::NativeOptions;
use crate::{failed, missing_inodes, missing_inotify_limits, missing_landlock};

/// Init lives in the sandbox's cgroup too.
pub(crate) const OWN_PROCESSES: u64 = 1;

/// The host as the native backend found it.
pub(crate) struct Host {
    pub(crate) hierarchy: Hierarchy,
    pub(crate) enforces: Enforces,
    pub(crate) walls: Walls,
    pub(crate) capabilities: Capabilities,
    pub(crate) profile: Profile,
    pub(crate) filter: Program,
    /// Whether sandboxes have ids of their own, rather than the caller's.
    pub(crate) has_own_ids: bool,
    cores: usize,
    /// All memory of the machine, in bytes.
    pub(crate) memory: u64,
    without: BTreeSet<Protection>,
    waits: fn(&mut dyn FnMut()),
    /// Where the image lies that is the root, if one is.
    pub(crate) image: Option<PathBuf>,
}

impl Host {
    /// Does what may hold this thread up for long.
    pub(crate) fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let (mut wait, mut result) = (Some(wait), None);
        (self.waits)(&mut || result = wait.take().map(|wait| wait()));
        // Whoever set it may have forgotten to call what it was given.
        result.or_else(|| wait.take().map(|wait| wait())).expect("it was called now at the latest")
    }

    /// Probes everything but the cgroups of the host, whose hierarchy is given. Sandboxes show these directories.
    pub(crate) fn probe(
        options: &NativeOptions,
        mut hierarchy: Hierarchy,
        shown: &[Shown],
    ) -> Result<Self, BackendError> {
        hierarchy.sweep();
        let together = hierarchy
            .enclose(options.together.unwrap_or_else(OuterLimits::of_host))
            .map_err(|error| failed("make the cgroup around all sandboxes", error))?;
        let together = together
            .map(|OuterLimits { memory_bytes, pids }| TogetherLimits { memory_bytes, pids });
        let enforces = hierarchy.enforces();
        let mut without = options.without.clone();
        if without.contains(&Protection::Landlock) {
            // There are no parts of it then.
            without.extend(landlock::PARTS.iter().map(|part| part.protection));
        }
        if without.contains(&Protection::FreshRoot) {
            // A program may write where the host lets it, which an overlay would hide.
            without.insert(Protection::PrivateInodes);
        }
        if without.contains(&Protection::PrivateInodes) {
            without.insert(Protection::PrivateFileInodes);
        }
        let mut walls = Walls::all();
        for protection in &without {
            walls = walls.without(*protection);
        }
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, DeniedAction::Notify)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let landlock_version = landlock::version();
        for part in landlock::missing_from(landlock_version) {
            walls = walls.without(part.protection);
        }
        let has_own_ids = ids::are_available();
        let mut missing = missing(enforces, landlock_version);
        let makes_devices = has_own_ids && container_inodes::can_make_devices();
        let of_inodes = missing_inodes(shown, makes_devices).into_iter();
        for lack in of_inodes.chain(missing_inotify_limits(has_own_ids)) {
            walls = walls.without(lack.protection);
            missing.push(lack);
        }
        let enforceable = Protection::ALL
            .iter()
            .copied()
            .filter(|protection| missing.iter().all(|missing| missing.protection != *protection))
            .filter(|protection| !without.contains(protection))
            .collect();
        Ok(Self {
            capabilities: Capabilities { enforceable, missing, together },
            hierarchy,
            enforces,
            walls,
            profile,
            filter,
            has_own_ids,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            without,
            waits: options.waits,
            image: options.image.clone(),
            memory: memory(),
        })
    }

    /// Refuses a plan that asks for what cannot be had, unless it said that it can do without.
    ///
    /// Walls are wanted by every plan; limits are wanted if the request set them. A default limit that
    /// cannot be held, and what only stands behind other walls, is left out of what the report calls enforced.
    pub(crate) fn check(&self, plan: &StagePlan) -> Result<(), BackendError> {
        for missing in &self.capabilities.missing {
            let protection = missing.protection;
            let wanted = if is_limit(protection) {
                plan.limits.is_asked(protection)
            } else {
                !protection.is_defense_in_depth()
            };
            if wanted && !plan.allow_missing.contains(&protection) {
                return Err(BackendError::CannotEnforce(missing.clone()));
            }
        }
        let is_whole = plan.limits.cpu_millis().is_multiple_of(1000);
        if !self.enforces.cpu_quota
            && plan.limits.is_asked(Protection::Cpu)
            && !is_whole
            && !plan.allow_missing.contains(&Protection::Cpu)
        {
            return Err(BackendError::CannotEnforce(MissingProtection {
                protection: Protection::Cpu,
                reason: "without cgroups only whole CPUs can be given".to_owned(),
                remedy: "ask for a whole number of CPUs".to_owned(),
            }));
        }
        Ok(())
    }

    /// The name of a denied call, and what it is answered.
    pub(crate) fn refusal(&self, call: &Notification) -> (String, i32) {
        match self.profile.verdict(Arch::NATIVE, call.number, call.arguments) {
            Verdict::Deny { name, errno, .. } => (name.to_owned(), errno),
            // Nothing is let through from here, whatever the reason it arrived.
            Verdict::Allow => (format!("#{}", call.number), Errno::PERM.raw_os_error()),
        }
    }

    /// What really stands for this plan.
    pub(crate) fn enforced(&self, plan: &StagePlan) -> Vec<Protection> {
        let has_cpu_limit = plan.limits.cpu_time().is_some();
        self.capabilities
            .enforceable
            .iter()
            .copied()
            .filter(|protection| *protection != Protection::CpuTime || has_cpu_limit)
            .collect()
    }

    pub(crate) fn has(&self, protection: Protection) -> bool {
        !self.without.contains(&protection)
    }

    /// The limit on memory, where the sandbox has a network in which it could hold more.
    pub(crate) fn limits_network_memory(&self, plan: &StagePlan) -> Option<u64> {
        let has_loopback = plan.network != NetworkPolicy::None || plan.gate.is_some();
        let is_own = has_loopback && self.has(Protection::NetNamespace);
        is_own.then(|| self.cgroup_limits(&plan.limits).memory_bytes).flatten()
    }

    /// The limits for the cgroup, as far as it has them and they are wanted.
    pub(crate) fn cgroup_limits(&self, limits: &sandbox_core::Limits) -> CgroupLimits {
        let wanted = |held: bool, protection| held && self.has(protection);
        CgroupLimits {
            memory_bytes: wanted(self.enforces.memory, Protection::Memory)
                .then(|| limits.memory().as_u64()),
            pids: wanted(self.enforces.pids, Protection::Pids)
                .then(|| u64::from(limits.pids()) + OWN_PROCESSES),
            cpu_millis: wanted(self.enforces.cpu_quota, Protection::Cpu)
                .then(|| limits.cpu_millis()),
        }
    }

    /// The limits that resource limits enforce beside a cgroup, or in its place.
    pub(crate) fn shared_rlimits(&self, limits: &sandbox_core::Limits) -> Shared {
        // Beside a cgroup only where the sandbox has user ids of its own: older kernels count the caller's other processes
        // too. Init counts where it shares the program's id.
        let limits_pids = self.has_own_ids || !self.enforces.pids;
        let pids = u64::from(limits.pids()) + u64::from(!self.has_own_ids);
        Shared {
            memory: !self.enforces.memory && self.has(Protection::Memory),
            pids: (limits_pids && self.has(Protection::Pids)).then_some(pids),
        }
    }

    /// Cores to bind to where there is no quota, a bit each; 0 for all.
    pub(crate) fn cores_for(&self, limits: &sandbox_core::Limits, turn: usize) -> u64 {
        if self.enforces.cpu_quota || !self.has(Protection::Cpu) {
            return 0;
        }
        let wanted = limits.cpu_millis().div_ceil(1000) as usize;
        let cores = self.cores.min(64);
        if wanted >= cores {
            return 0;
        }
        (0..wanted).fold(0, |set, place| set | 1 << ((turn + place) % cores))
    }
}

fn memory() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(system.mem_unit.into())
}

fn is_limit(protection: Protection) -> bool {
    matches!(
        protection,
        Protection::Memory
            | Protection::Pids
            | Protection::Cpu
            | Protection::CpuTime
            | Protection::WallTime
            | Protection::Disk
            | Protection::Output
            | Protection::OpenFiles
    )
}

fn missing(enforces: Enforces, landlock_version: u32) -> Vec<MissingProtection> {
    let mut missing = Vec::new();
    let mut lacks = |protection, why: &str| {
        missing.push(MissingProtection {
            protection,
            reason: why.to_owned(),
            remedy: "run as root, or under a delegated cgroup: systemd-run --user --scope \
                     -p Delegate=yes …"
                .to_owned(),
        });
    };
    if !(enforces.memory && enforces.swap_off) {
        lacks(Protection::Memory, "no cgroup limits the memory of all processes together");
    }
    if !enforces.cpu_accounting {
        lacks(Protection::CpuTime, "no cgroup counts the CPU time of all processes together");
    }
    missing.extend(missing_landlock(landlock_version));
    missing
}
