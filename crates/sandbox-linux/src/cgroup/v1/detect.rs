//! Finds the v1 controllers and whether this process may create cgroups in them.
//!
//! They are created below the cgroup of this process, in each hierarchy separately, so that limits
//! on this process, for instance those of a container, apply to its sandboxes too.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::super::file::Directory;
use super::super::group::Group;
use super::super::hierarchy::{exercise, host_has_no_swap};
use super::super::locate::Locations;
use super::super::outer::limits_above;
use super::super::{CgroupError, Enforces, OuterLimits, SweepOutcome, background, oom, sweep};
use super::cgroup::V1Cgroup;
use super::files::SOCKET_MEMORY_LIMIT;

/// The v1 controllers in use.
#[derive(Debug)]
pub(crate) struct V1Hierarchy {
    /// The cgroup of this process.
    base: Vec<Arc<Directory>>,
    /// Where cgroups are created: in the base, or in the cgroup around them. For CPU time it is the base.
    parents: Vec<Arc<Directory>>,
    /// The first cgroup, if it was created ahead. Removed before the one around it.
    first: Mutex<Option<Box<V1Cgroup>>>,
    /// The cgroup around them, which is removed with this value.
    outer: Option<Group>,
    layout: Layout,
    enforces: Enforces,
}

/// Which of the parents serves which controller. Several controllers may share one hierarchy, as
/// `cpu,cpuacct` often do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) memory: usize,
    pub(crate) pids: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) cpuacct: Option<usize>,
}

impl Layout {
    /// Whether a parent serves a controller that limits all sandboxes together.
    fn limits_in(self, place: usize) -> bool {
        [self.memory, self.pids].contains(&place)
    }
}

impl V1Hierarchy {
    /// Memory and pids are required. Without cpu or cpuacct the rest is still useful.
    pub(crate) fn detect(locations: &Locations, reasons: &mut Vec<String>) -> Option<V1Hierarchy> {
        let mut parents = Vec::new();
        let mut find = |controller| {
            usable_parent(locations, controller, &mut parents)
                .map_err(|reason| reasons.push(reason))
                .ok()
        };
        let (Some(memory), Some(pids)) = (find("memory"), find("pids")) else {
            return None;
        };
        let (cpu, cpuacct) = (find("cpu"), find("cpuacct"));
        let layout = Layout { memory, pids, cpu, cpuacct };
        V1Hierarchy::try_out(parents, layout)
            .map_err(|error| {
                reasons.push(format!("cgroup v1 is mounted but unusable: {}.", error.in_full()));
            })
            .ok()
    }

    fn try_out(parents: Vec<Arc<Directory>>, layout: Layout) -> Result<Self, CgroupError> {
        let sample = Group::make(&parents)?;
        let enforces = abilities(&sample, layout);
        sample.remove()?;
        if !enforces.memory || !enforces.pids {
            return Err(CgroupError::NotEnforced { what: "memory and processes".to_owned() });
        }
        let base = parents.clone();
        let first = Mutex::new(None);
        let hierarchy = V1Hierarchy { base, parents, first, outer: None, layout, enforces };
        exercise(&hierarchy.create()?, enforces)?;
        Ok(hierarchy)
    }

    pub(crate) fn enforces(&self) -> Enforces {
        self.enforces
    }

    pub(crate) fn describe(&self) -> String {
        let places: Vec<String> =
            self.parents.iter().map(|parent| parent.path().display().to_string()).collect();
        format!("cgroup v1 below {}", places.join(", "))
    }

    pub(crate) fn parents(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let base = self.outer.iter().flat_map(|_| &self.base);
        self.parents.iter().chain(base).map(|parent| parent.duplicate()).collect()
    }

    pub(crate) fn attach_preparation(&self) -> impl FnOnce() + Send + 'static {
        // A failure is reported when the cgroup is needed.
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) = self.make().ok().map(Box::new);
        let own = Arc::clone(&self.base[self.layout.pids]);
        move || {
            // Optional.
            let _ = own.write("cgroup.procs", "0");
        }
    }

    pub(crate) fn enclose(&mut self, limits: OuterLimits) -> Result<OuterLimits, CgroupError> {
        let outer = Group::make(&self.base)?;
        let memory = outer.directory(self.layout.memory);
        let around = limits_above(outer.parent(self.layout.memory).path(), "memory.limit_in_bytes");
        let limits = limits.within(around);
        // Before Linux 5.11 a cgroup limits its children only if `use_hierarchy` is set.
        if memory.has("memory.use_hierarchy") {
            memory.write("memory.use_hierarchy", "1")?;
        }
        let bytes = limits.memory_bytes.to_string();
        memory.write("memory.limit_in_bytes", &bytes)?;
        if memory.has("memory.memsw.limit_in_bytes") {
            memory.write("memory.memsw.limit_in_bytes", &bytes)?;
        }
        outer.directory(self.layout.pids).write("pids.max", &limits.pids.to_string())?;
        self.parents = outer.directories();
        if let Some(cpu) = self.layout.cpu.filter(|cpu| !self.layout.limits_in(*cpu)) {
            // The limits above are in other hierarchies. Here a sandbox in the background has to be a sibling of this
            // process, which otherwise waits for the cgroup around it.
            self.parents[cpu] = Arc::clone(&self.base[cpu]);
        }
        self.outer = Some(outer);
        Ok(limits)
    }

    /// Puts the cgroup around all that are created here into the background, or back, if there is one
    /// around them that has CPU time.
    pub(crate) fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        let cpu = self.layout.cpu.filter(|cpu| self.layout.limits_in(*cpu));
        match (&self.outer, cpu) {
            (Some(outer), Some(cpu)) => background::set(outer.directory(cpu), is_background),
            _ => Ok(()),
        }
    }

    pub(crate) fn create(&self) -> Result<V1Cgroup, CgroupError> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or_else(|| self.make(), |first| Ok(*first))
    }

    fn make(&self) -> Result<V1Cgroup, CgroupError> {
        V1Cgroup::prepare(Group::make(&self.parents)?, self.layout, self.enforces)
    }

    pub(crate) fn sweep(&self, outcome: &mut SweepOutcome) {
        for parent in &self.base {
            sweep::sweep_directory(parent, outcome);
        }
    }
}

/// Finds the cgroup of this process for a controller and tries to create another below it. Returns
/// its index in the list of parents.
fn usable_parent(
    locations: &Locations,
    controller: &str,
    parents: &mut Vec<Arc<Directory>>,
) -> Result<usize, String> {
    let own = locations.v1(controller)?.own;
    if let Some(place) = parents.iter().position(|parent| parent.path() == own) {
        return Ok(place);
    }
    let parent = Directory::open(&own)
        .map(Arc::new)
        .map_err(|error| format!("The cgroup v1 controller {controller}: {}.", error.in_full()))?;
    let trial = Group::make(std::slice::from_ref(&parent)).and_then(|group| group.remove());
    trial.map_err(|error| {
        let remedy = match error.errno() {
            Some(Errno::ACCESS | Errno::PERM) => {
                "; run as root, or start this process in a cgroup whose directory belongs to it"
            }
            Some(Errno::ROFS) => "; mount it writable",
            _ => "",
        };
        format!("The cgroup v1 controller {controller}: {}{remedy}.", error.in_full())
    })?;
    parents.push(parent);
    Ok(parents.len() - 1)
}

fn abilities(sample: &Group, layout: Layout) -> Enforces {
    let memory = sample.directory(layout.memory);
    let pids = sample.directory(layout.pids);
    let has =
        |place: Option<usize>, file| place.is_some_and(|place| sample.directory(place).has(file));
    Enforces {
        // Without the second, socket buffers would use memory without limit.
        memory: memory.has("memory.limit_in_bytes") && memory.has(SOCKET_MEMORY_LIMIT),
        swap_off: memory.has("memory.memsw.limit_in_bytes") || host_has_no_swap(),
        pids: pids.has("pids.max"),
        cpu_quota: has(layout.cpu, "cpu.cfs_quota_us"),
        cpu_accounting: has(layout.cpuacct, "cpuacct.usage"),
        memory_peak: memory.has("memory.max_usage_in_bytes"),
        pids_peak: pids.has("pids.peak"),
        oom_events: memory.has("cgroup.event_control")
            && oom::are_counted(memory, "memory.oom_control"),
        kill: true,
    }
}
