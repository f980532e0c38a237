//! The control files of a v1 cgroup that a run uses, opened when the cgroup is created.
//!
//! Opening and closing a control file takes four times as long as reading or writing it, and a run
//! needs a dozen. So they are opened in the background, which costs some fifteen descriptors for
//! each cgroup that is kept ready. Those of long-running programs are closed again.

use std::sync::Arc;

use rustix::fs::OFlags;

use super::super::file::{Directory, ReopenableFile};
use super::super::group::Group;
use super::super::{CgroupError, Enforces};
use super::detect::Layout;

pub(crate) const SOCKET_MEMORY_LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";

/// `None` if the host lacks the file.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) memory_limit: ReopenableFile,
    /// The limit on memory and swap together.
    pub(crate) memory_and_swap_limit: Option<ReopenableFile>,
    /// Buffers of TCP and UDP, which v1 does not count as memory.
    pub(crate) socket_memory_limit: ReopenableFile,
    pub(crate) memory_current: ReopenableFile,
    /// Writing resets it.
    pub(crate) memory_peak: Option<ReopenableFile>,
    pub(crate) oom_control: Option<ReopenableFile>,
    pub(crate) pids_limit: ReopenableFile,
    pub(crate) pids_current: ReopenableFile,
    pub(crate) pids_peak: Option<ReopenableFile>,
    pub(crate) cpu_quota: Option<ReopenableFile>,
    pub(crate) cpu_total: Option<ReopenableFile>,
    pub(crate) cpu_user: Option<ReopenableFile>,
    pub(crate) cpu_system: Option<ReopenableFile>,
}

impl Files {
    pub(crate) fn open(
        group: &Group,
        layout: Layout,
        enforces: Enforces,
    ) -> Result<Files, CgroupError> {
        let directories = group.directories();
        let (memory, pids) = (&directories[layout.memory], &directories[layout.pids]);
        let cpu = layout.cpu.map(|place| &directories[place]);
        let cpuacct = layout.cpuacct.map(|place| &directories[place]);
        let open = ReopenableFile::open;
        let open_if = |there: bool, directory: Option<&Arc<Directory>>, file, access| {
            let directory = directory.filter(|_| there);
            directory.map(|directory| open(directory, file, access)).transpose()
        };
        let (read, write, both) = (OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR);
        let memory_peak = "memory.max_usage_in_bytes";
        Ok(Files {
            memory_limit: open(memory, "memory.limit_in_bytes", write)?,
            memory_and_swap_limit: open(memory, "memory.memsw.limit_in_bytes", write).ok(),
            socket_memory_limit: open(memory, SOCKET_MEMORY_LIMIT, write)?,
            memory_current: open(memory, "memory.usage_in_bytes", read)?,
            memory_peak: open_if(enforces.memory_peak, Some(memory), memory_peak, both)?,
            oom_control: open_if(enforces.oom_events, Some(memory), "memory.oom_control", read)?,
            pids_limit: open(pids, "pids.max", write)?,
            pids_current: open(pids, "pids.current", read)?,
            pids_peak: open_if(enforces.pids_peak, Some(pids), "pids.peak", read)?,
            cpu_quota: open_if(enforces.cpu_quota, cpu, "cpu.cfs_quota_us", write)?,
            cpu_total: open_if(enforces.cpu_accounting, cpuacct, "cpuacct.usage", read)?,
            // Linux has these two only since 4.6, and they are optional.
            cpu_user: cpuacct.and_then(|place| open(place, "cpuacct.usage_user", read).ok()),
            cpu_system: cpuacct.and_then(|place| open(place, "cpuacct.usage_sys", read).ok()),
        })
    }

    /// All of them are reopened when they are needed.
    pub(crate) fn close(&self) {
        [&self.memory_limit, &self.memory_current, &self.pids_limit, &self.pids_current]
            .into_iter()
            .chain(&self.memory_and_swap_limit)
            .chain(&self.memory_peak)
            .chain(&self.oom_control)
            .chain(&self.pids_peak)
            .chain(&self.cpu_quota)
            .chain(&self.cpu_total)
            .chain(&self.cpu_user)
            .chain(&self.cpu_system)
            .for_each(ReopenableFile::close);
    }
}
