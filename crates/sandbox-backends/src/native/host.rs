//! What this host can enforce, found by probing, less what the options switch off.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::thread::sched_getaffinity;
use sandbox_core::{
    AggregateLimits, BackendError, Capabilities, Feature, MissingProtection, NetworkPolicy,
    Protection, StagePlan,
};
use sandbox_linux::cgroup::{CgroupLimits, Enforces, Hierarchy, OuterLimits};
use sandbox_linux::rlimits::Shared;
use sandbox_linux::seccomp::{Arch, DeniedAction, Notification, Profile, Program, Verdict};
use sandbox_linux::skeleton::Shown;
use sandbox_linux::{ProtectionSet, container_inodes, ids, landlock};

use super::NativeOptions;
use super::cpu_shares::CpuShares;
use crate::error::failed;
use crate::missing::{
    missing_inodes, missing_inotify_limits, missing_ipc_limits, missing_landlock,
};

/// Init is in the sandbox's cgroup too.
pub(crate) const OWN_PROCESSES: u64 = 1;

/// What the native backend found out about the host.
pub(crate) struct Host {
    pub(crate) hierarchy: Hierarchy,
    pub(crate) enforces: Enforces,
    pub(crate) protections: ProtectionSet,
    pub(crate) capabilities: Capabilities,
    pub(crate) profile: Profile,
    pub(crate) filter: Program,
    /// Whether sandboxes get user and group IDs of their own, rather than the caller's.
    pub(crate) has_own_ids: bool,
    cores: usize,
    /// Recent use of CPU time by owner.
    pub(crate) cpu_shares: CpuShares,
    /// Memory of the machine, in bytes.
    pub(crate) memory: u64,
    without: BTreeSet<Protection>,
    waits: fn(&mut dyn FnMut()),
    /// The directory of the unpacked image that is the root, if there is one.
    pub(crate) image: Option<PathBuf>,
}

impl Host {
    /// Runs something that may block for long, through the hook in the options.
    pub(crate) fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let (mut wait, mut result) = (Some(wait), None);
        (self.waits)(&mut || result = wait.take().map(|wait| wait()));
        // The hook may have failed to call its argument.
        result.or_else(|| wait.take().map(|wait| wait())).expect("it was called now at the latest")
    }

    /// Probes the host. `shown` are the host directories that sandboxes show.
    pub(crate) fn probe(
        options: &NativeOptions,
        hierarchy: Hierarchy,
        aggregate_limits: Option<AggregateLimits>,
        shown: &[Shown],
    ) -> Result<Self, BackendError> {
        let enforces = hierarchy.enforces();
        let mut without = options.without.clone();
        if without.contains(&Protection::Landlock) {
            // The parts of Landlock are off with it.
            without.extend(landlock::PARTS.iter().map(|part| part.protection));
        }
        if without.contains(&Protection::FreshRoot) {
            // A program may then write to host directories, which an overlay would hide.
            without.insert(Protection::PrivateInodes);
        }
        if without.contains(&Protection::PrivateInodes) {
            without.insert(Protection::PrivateFileInodes);
        }
        let mut protections = ProtectionSet::all();
        for protection in &without {
            protections = protections.without(*protection);
        }
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, DeniedAction::Notify)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let landlock_version = landlock::version();
        for part in landlock::missing_from(landlock_version) {
            protections = protections.without(part.protection);
        }
        let has_own_ids = ids::are_available();
        let mut missing = missing(enforces, landlock_version);
        let makes_devices = has_own_ids && container_inodes::can_make_devices();
        let of_inodes = missing_inodes(shown, makes_devices).into_iter();
        let counts = [missing_inotify_limits(has_own_ids), missing_ipc_limits(has_own_ids)];
        for lack in of_inodes.chain(counts.into_iter().flatten()) {
            protections = protections.without(lack.protection);
            missing.push(lack);
        }
        let enforceable = Protection::ALL
            .iter()
            .copied()
            .filter(|protection| missing.iter().all(|missing| missing.protection != *protection))
            .filter(|protection| !without.contains(protection))
            .collect();
        // An instance finds the descendants of a program in it.
        let lists_children = Path::new("/proc/thread-self/children").exists();
        let features = lists_children.then_some(Feature::Instances).into_iter().collect();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let affinity = sched_getaffinity(None).ok();
        Ok(Self {
            capabilities: Capabilities { enforceable, missing, features, aggregate_limits },
            hierarchy,
            enforces,
            protections,
            profile,
            filter,
            has_own_ids,
            cores,
            // Where affinity enforces the limit on CPUs, it is not free for other purposes.
            cpu_shares: CpuShares::new(cores, affinity.filter(|_| enforces.cpu_quota)),
            without,
            waits: options.waits,
            image: options.image.clone(),
            memory: memory(),
        })
    }

    /// Refuses a plan that requires a protection that is missing, unless the plan allows it to be
    /// missing.
    ///
    /// Every plan requires isolation; it requires a limit only if the request set it. Default
    /// limits that cannot be enforced, and missing defense in depth, are only left out of the
    /// report's list of enforced protections.
    pub(crate) fn check(&self, plan: &StagePlan) -> Result<(), BackendError> {
        for missing in &self.capabilities.missing {
            let protection = missing.protection;
            let wanted = if is_limit(protection) {
                plan.sandbox.limits.is_requested(protection)
            } else {
                !protection.is_defense_in_depth()
            };
            if wanted && !plan.sandbox.allow_missing.contains(&protection) {
                return Err(BackendError::CannotEnforce(missing.clone()));
            }
        }
        let is_whole = plan.sandbox.limits.cpu_millis().is_multiple_of(1000);
        if !self.enforces.cpu_quota
            && plan.sandbox.limits.is_requested(Protection::Cpu)
            && !is_whole
            && !plan.sandbox.allow_missing.contains(&Protection::Cpu)
        {
            return Err(BackendError::CannotEnforce(MissingProtection {
                protection: Protection::Cpu,
                reason: "without cgroups only whole CPUs can be given".to_owned(),
                remedy: "ask for a whole number of CPUs".to_owned(),
            }));
        }
        Ok(())
    }

    /// The name of a denied call, and the error number to return.
    pub(crate) fn refusal(&self, call: &Notification) -> (String, i32) {
        match self.profile.verdict(Arch::NATIVE, call.number, call.arguments) {
            Verdict::Deny { name, errno, .. } => (name.to_owned(), errno),
            // Nothing is allowed from here, whatever the reason for the notification.
            Verdict::Allow => (format!("#{}", call.number), Errno::PERM.raw_os_error()),
        }
    }

    /// Protections that are in force for this plan.
    pub(crate) fn enforced(&self, plan: &StagePlan) -> Vec<Protection> {
        let has_cpu_limit = plan.sandbox.limits.cpu_time().is_some();
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

    /// The memory limit, if the sandbox has a network in which it could exceed it.
    pub(crate) fn limits_network_memory(&self, plan: &StagePlan) -> Option<u64> {
        let has_loopback =
            plan.sandbox.network != NetworkPolicy::None || plan.sandbox.egress_proxy.is_some();
        let is_own = has_loopback && self.has(Protection::NetNamespace);
        is_own.then(|| self.cgroup_limits(&plan.sandbox.limits).memory_bytes).flatten()
    }

    /// The limits that the cgroup enforces.
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

    /// The limits that rlimits enforce in addition to the cgroup, or instead of it.
    pub(crate) fn shared_rlimits(&self, limits: &sandbox_core::Limits) -> Shared {
        // In addition to the cgroup only if the sandbox has user IDs of its own: older kernels also
        // count other processes of the caller. Init counts if it shares the program's ID.
        let limits_pids = self.has_own_ids || !self.enforces.pids;
        let pids = u64::from(limits.pids()) + u64::from(!self.has_own_ids);
        Shared {
            memory: !self.enforces.memory && self.has(Protection::Memory),
            pids: (limits_pids && self.has(Protection::Pids)).then_some(pids),
        }
    }

    /// The CPUs to bind to if there is no quota, as a bit mask; 0 for all.
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

/// Removes cgroups of dead supervisors, and creates the one around all sandboxes. Returns its limits.
pub(crate) fn enclose(
    hierarchy: &mut Hierarchy,
    options: &NativeOptions,
) -> Result<Option<AggregateLimits>, BackendError> {
    hierarchy.sweep();
    let limits = hierarchy
        .enclose(options.aggregate_limits.unwrap_or_else(OuterLimits::of_host))
        .map_err(|error| failed("make the cgroup around all sandboxes", error))?;
    Ok(limits.map(|OuterLimits { memory_bytes, pids }| AggregateLimits { memory_bytes, pids }))
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
