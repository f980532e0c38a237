//! The control files of one v2 cgroup that a run touches, opened when the cgroup is made, because
//! opening takes longer than reading or writing.

use rustix::fs::OFlags;

use super::super::file::{ControlFile, Directory};
use super::super::{CgroupError, Enforces};

/// What is `None` is not there on this host.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) cpu_stat: ControlFile,
    pub(crate) cpu_limit: Option<ControlFile>,
    pub(crate) memory_limit: Option<ControlFile>,
    pub(crate) memory_current: Option<ControlFile>,
    /// Writing resets it, but only for this descriptor.
    pub(crate) memory_peak: Option<ControlFile>,
    pub(crate) memory_events: Option<ControlFile>,
    pub(crate) pids_limit: Option<ControlFile>,
    pub(crate) pids_current: Option<ControlFile>,
    pub(crate) pids_peak: Option<ControlFile>,
    pub(crate) io_stat: Option<ControlFile>,
}

impl Files {
    pub(crate) fn open(directory: &Directory, enforces: Enforces) -> Result<Files, CgroupError> {
        let open_if = |there: bool, file, access| {
            there.then(|| directory.open_file(file, access)).transpose()
        };
        let (read, write) = (OFlags::RDONLY, OFlags::WRONLY);
        Ok(Files {
            cpu_stat: directory.open_file("cpu.stat", read)?,
            cpu_limit: open_if(enforces.cpu_quota, "cpu.max", write)?,
            memory_limit: open_if(enforces.memory, "memory.max", write)?,
            memory_current: open_if(enforces.memory, "memory.current", read)?,
            memory_peak: enforces.memory_peak.then(|| open_peak(directory)).transpose()?,
            memory_events: open_if(enforces.oom_events, "memory.events", read)?,
            pids_limit: open_if(enforces.pids, "pids.max", write)?,
            pids_current: open_if(enforces.pids, "pids.current", read)?,
            pids_peak: open_if(enforces.pids_peak, "pids.peak", read)?,
            io_stat: directory.open_file("io.stat", read).ok(),
        })
    }
}

/// Before Linux 6.12 the peak could not be reset and the file cannot be opened for writing, except
/// by root, whose write then fails.
fn open_peak(directory: &Directory) -> Result<ControlFile, CgroupError> {
    directory
        .open_file("memory.peak", OFlags::RDWR)
        .or_else(|_| directory.open_file("memory.peak", OFlags::RDONLY))
}
