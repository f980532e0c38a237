//! The control files of one v1 cgroup that a run touches, opened when the cgroup is made.
//!
//! Opening and closing a control file takes four times as long as reading or writing it, and a run
//! needs a dozen. So they are opened in the background, at the price of some fifteen descriptors
//! for each cgroup that is being held ready.

use rustix::fs::OFlags;

use super::super::file::{ControlFile, Directory};
use super::super::group::Group;
use super::super::{CgroupError, Enforces};
use super::detect::Layout;

pub(crate) const SOCKET_MEMORY_LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";

/// What is `None` is not there on this host.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) memory_limit: ControlFile,
    /// The limit on memory and swap together.
    pub(crate) memory_and_swap_limit: Option<ControlFile>,
    /// Buffers of TCP and UDP, which v1 does not count as memory.
    pub(crate) socket_memory_limit: ControlFile,
    pub(crate) socket_memory: ControlFile,
    pub(crate) memory_current: ControlFile,
    /// Writing resets it.
    pub(crate) memory_peak: Option<ControlFile>,
    pub(crate) oom_control: Option<ControlFile>,
    pub(crate) pids_limit: ControlFile,
    pub(crate) pids_current: ControlFile,
    pub(crate) pids_peak: Option<ControlFile>,
    pub(crate) cpu_quota: Option<ControlFile>,
    pub(crate) cpu_total: Option<ControlFile>,
    pub(crate) cpu_user: Option<ControlFile>,
    pub(crate) cpu_system: Option<ControlFile>,
}

impl Files {
    pub(crate) fn open(
        group: &Group,
        layout: Layout,
        enforces: Enforces,
    ) -> Result<Files, CgroupError> {
        let memory = group.directory(layout.memory);
        let pids = group.directory(layout.pids);
        let cpu = layout.cpu.map(|place| group.directory(place));
        let cpuacct = layout.cpuacct.map(|place| group.directory(place));
        let open_if = |there: bool, directory: Option<&Directory>, file, access| {
            let directory = directory.filter(|_| there);
            directory.map(|directory| directory.open_file(file, access)).transpose()
        };
        let (read, write, both) = (OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR);
        let memory_peak = "memory.max_usage_in_bytes";
        Ok(Files {
            memory_limit: memory.open_file("memory.limit_in_bytes", write)?,
            memory_and_swap_limit: memory.open_file("memory.memsw.limit_in_bytes", write).ok(),
            socket_memory_limit: memory.open_file(SOCKET_MEMORY_LIMIT, write)?,
            socket_memory: memory.open_file("memory.kmem.tcp.usage_in_bytes", read)?,
            memory_current: memory.open_file("memory.usage_in_bytes", read)?,
            memory_peak: open_if(enforces.memory_peak, Some(memory), memory_peak, both)?,
            oom_control: open_if(enforces.oom_events, Some(memory), "memory.oom_control", read)?,
            pids_limit: pids.open_file("pids.max", write)?,
            pids_current: pids.open_file("pids.current", read)?,
            pids_peak: open_if(enforces.pids_peak, Some(pids), "pids.peak", read)?,
            cpu_quota: open_if(enforces.cpu_quota, cpu, "cpu.cfs_quota_us", write)?,
            cpu_total: open_if(enforces.cpu_accounting, cpuacct, "cpuacct.usage", read)?,
            // Linux has these two only since 4.6, and nothing depends on them.
            cpu_user: cpuacct.and_then(|place| place.open_file("cpuacct.usage_user", read).ok()),
            cpu_system: cpuacct.and_then(|place| place.open_file("cpuacct.usage_sys", read).ok()),
        })
    }
}
