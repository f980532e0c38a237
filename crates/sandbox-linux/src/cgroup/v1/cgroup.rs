//! A v1 cgroup.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::thread::CpuSet;

use super::super::file::{Directory, ReopenableFile};
use super::super::group::Group;
use super::super::limits::CPU_PERIOD_MICROSECONDS;
use super::super::{
    Cgroup, CgroupError, CgroupLimits, Enforces, Entry, OomWatch, Removal, Usage, affinity,
    background, kill, oom,
};
use super::detect::Layout;
use super::files::Files;

/// Ten thousand CPUs: a quota that is set but never reached. The first quota is what takes time in
/// the kernel, so it is set ahead of time.
const UNREACHABLE_QUOTA: u64 = 10_000 * CPU_PERIOD_MICROSECONDS;

/// v1 counts socket buffers beside the memory limit; they may use this fraction of it. At the
/// limit, sends block and datagrams are dropped.
const SOCKET_MEMORY_SHARE: u64 = 16;
const MIN_SOCKET_MEMORY: u64 = 1 << 20;

/// A cgroup that is one directory in each v1 hierarchy.
#[derive(Debug)]
pub(crate) struct V1Cgroup {
    group: Group,
    layout: Layout,
    enforces: Enforces,
    files: Files,
}

impl V1Cgroup {
    /// Sets everything that does not depend on the limits.
    pub(crate) fn prepare(
        group: Group,
        layout: Layout,
        enforces: Enforces,
    ) -> Result<V1Cgroup, CgroupError> {
        let files = Files::open(&group, layout, enforces)?;
        // The limit on memory and swap together is what counts. This only keeps the kernel from
        // swapping, and some kernels lack the file.
        let _ = group.directory(layout.memory).write("memory.swappiness", "0");
        // Sockets are counted from the first limit on, and setting that up takes the kernel long.
        files.socket_memory_limit.write("-1")?;
        if let (Some(cpu), Some(quota)) = (layout.cpu, &files.cpu_quota) {
            let period = CPU_PERIOD_MICROSECONDS.to_string();
            group.directory(cpu).write("cpu.cfs_period_us", &period)?;
            // Refused if the parent cgroup has a quota, and then not needed either.
            let _ = quota.write(&UNREACHABLE_QUOTA.to_string());
        }
        Ok(V1Cgroup { group, layout, enforces, files })
    }

    /// The kernel requires memory ≤ memory plus swap at every moment: lower memory first, raise the
    /// sum first.
    fn limit_memory(&self, bytes: u64) -> Result<(), CgroupError> {
        let socket_memory = (bytes / SOCKET_MEMORY_SHARE).max(MIN_SOCKET_MEMORY);
        self.files.socket_memory_limit.write(&socket_memory.to_string())?;
        let bytes = bytes.to_string();
        let outcome = self.files.memory_limit.write(&bytes);
        match (&self.files.memory_and_swap_limit, outcome) {
            (Some(sum), Ok(())) => sum.write(&bytes),
            (Some(sum), Err(error)) if error.errno() == Some(Errno::INVAL) => {
                sum.write(&bytes)?;
                self.files.memory_limit.write(&bytes)
            }
            (_, outcome) => outcome,
        }
    }

    fn limit_cpu(
        &self,
        place: usize,
        file: &ReopenableFile,
        quota: u64,
    ) -> Result<(), CgroupError> {
        match file.write(&quota.to_string()) {
            // v1 refuses a quota above that of the parent cgroup, which then is the tighter limit
            // and holds for this cgroup as well.
            Err(error)
                if error.errno() == Some(Errno::INVAL)
                    && quota_is_tighter(self.group.parent(place), quota) =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// Whether a cgroup, or a parent of it, has less CPU time than a quota for this period.
fn quota_is_tighter(directory: &Directory, quota: u64) -> bool {
    let above = || directory.path().parent().and_then(|above| Directory::open(above).ok());
    own_quota_is_tighter(directory, quota)
        || above()
            .is_some_and(|above| above.has("cpu.cfs_quota_us") && quota_is_tighter(&above, quota))
}

fn own_quota_is_tighter(directory: &Directory, quota: u64) -> bool {
    // A cgroup without a quota has -1 there, which does not parse.
    let own_quota = directory.read_number("cpu.cfs_quota_us");
    let own_period = directory.read_number("cpu.cfs_period_us");
    match (own_quota, own_period) {
        (Ok(own_quota), Ok(own_period)) => {
            u128::from(own_quota) * u128::from(CPU_PERIOD_MICROSECONDS)
                < u128::from(quota) * u128::from(own_period)
        }
        _ => false,
    }
}

impl Cgroup for V1Cgroup {
    fn entry(&self) -> Result<Entry, CgroupError> {
        self.group.doors().map(Entry::Write)
    }

    fn set_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        limits.check(self.enforces)?;
        if let Some(bytes) = limits.memory_bytes {
            self.limit_memory(bytes)?;
        }
        if let Some(pids) = limits.pids_for_kernel() {
            self.files.pids_limit.write(&pids.to_string())?;
        }
        if let (Some(quota), Some(place), Some(file)) =
            (limits.quota_microseconds(), self.layout.cpu, &self.files.cpu_quota)
        {
            self.limit_cpu(place, file, quota)?;
        }
        Ok(())
    }

    fn reset_peak(&self) -> Result<(), CgroupError> {
        match &self.files.memory_peak {
            Some(file) => file.write("0"),
            None => Ok(()),
        }
    }

    fn usage(&self) -> Result<Usage, CgroupError> {
        let files = &self.files;
        let number = |file: &Option<ReopenableFile>| {
            file.as_ref().map(ReopenableFile::read_number).transpose()
        };
        Ok(Usage {
            cpu_total: self.cpu_total()?,
            cpu_user: number(&files.cpu_user)?.map(Duration::from_nanos),
            cpu_system: number(&files.cpu_system)?.map(Duration::from_nanos),
            memory_current: files.memory_current.read_number()?,
            memory_peak: number(&files.memory_peak)?,
            pids_current: files.pids_current.read_number()?,
            pids_peak: number(&files.pids_peak)?,
            io_read_bytes: None,
            io_write_bytes: None,
        })
    }

    fn uncounted_socket_memory(&self) -> Result<Option<OwnedFd>, CgroupError> {
        let directory = self.group.directory(self.layout.memory);
        let file = directory.open_file("memory.kmem.tcp.usage_in_bytes", OFlags::RDONLY)?;
        Ok(Some(file.into_descriptor()))
    }

    fn tasks(&self) -> Result<u64, CgroupError> {
        self.files.pids_current.read_number()
    }

    fn cpu_total(&self) -> Result<Duration, CgroupError> {
        match &self.files.cpu_total {
            Some(file) => file.read_number().map(Duration::from_nanos),
            None => Ok(Duration::ZERO),
        }
    }

    fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        let directory = self.layout.cpu.map(|place| self.group.directory(place));
        directory.map_or(Ok(()), |directory| background::set(directory, is_background))
    }

    fn bind(&self, cpus: &CpuSet) -> Result<(), CgroupError> {
        let directory = self.layout.cpu.map(|place| self.group.directory(place));
        directory.map_or(Ok(()), |directory| affinity::bind(directory, "tasks", cpus))
    }

    fn close_files(&self) {
        self.files.close();
    }

    fn oom_kills(&self) -> Result<u64, CgroupError> {
        self.files.oom_control.as_ref().map_or(Ok(0), |file| file.with(oom::kills))
    }

    fn oom_watch(&self) -> Result<Option<OomWatch>, CgroupError> {
        let memory = self.group.directory(self.layout.memory);
        self.enforces.oom_events.then(|| OomWatch::v1(memory)).transpose()
    }

    fn path_for_runtimes(&self) -> Option<String> {
        // It is created in the cgroup of this process, which may be another one in each hierarchy.
        Some(self.group.name().to_owned())
    }

    fn make_child(&self, name: &str) -> Result<Box<dyn Cgroup>, CgroupError> {
        let group = Group::make_named(name, &self.group.directories())?;
        Ok(Box::new(Self::prepare(group, self.layout, self.enforces)?))
    }

    fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        self.group.processes()
    }

    fn kill(&self) -> Result<(), CgroupError> {
        // A process that cannot fork cannot outrun the loop below.
        self.files.pids_limit.write("0")?;
        kill::kill_members(&self.group)
    }

    fn removal(&self) -> Result<Vec<Removal>, CgroupError> {
        self.group.removals()
    }

    fn remove(&self) -> Result<(), CgroupError> {
        self.group.remove()
    }

    fn dissolve(self: Box<Self>) -> Result<(), CgroupError> {
        let Self { group, files, .. } = *self;
        drop(files);
        kill::dissolve(&group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_around_counts_as_tighter_only_when_it_allows_less() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        // Half a CPU is asked for.
        for (quota, period, tighter) in [
            ("-1", "100000", false),
            ("50000", "100000", false),
            ("49999", "100000", true),
            ("20000", "50000", true),
            ("200000", "250000", false),
        ] {
            std::fs::write(folder.path().join("cpu.cfs_quota_us"), quota).unwrap();
            std::fs::write(folder.path().join("cpu.cfs_period_us"), period).unwrap();
            assert_eq!(quota_is_tighter(&directory, 50_000), tighter, "{quota} of {period}");
        }
    }
}
