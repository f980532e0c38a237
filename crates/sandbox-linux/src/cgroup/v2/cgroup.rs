//! A v2 cgroup.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::thread::CpuSet;

use super::super::file::{ControlFile, Directory};
use super::super::group::Group;
use super::super::limits::CPU_PERIOD_MICROSECONDS;
use super::super::{
    Cgroup, CgroupError, CgroupLimits, Enforces, Entry, OomWatch, Removal, Usage, affinity,
    background, kill, oom, parse,
};
use super::files::Files;

/// A cgroup that is one directory.
#[derive(Debug)]
pub(crate) struct V2Cgroup {
    group: Group,
    enforces: Enforces,
    files: Files,
}

impl V2Cgroup {
    /// Sets everything that does not depend on the limits.
    pub(crate) fn prepare(group: Group, enforces: Enforces) -> Result<V2Cgroup, CgroupError> {
        let directory = group.directory(0);
        if enforces.memory {
            write_if_there(directory, "memory.swap.max", "0")?;
            // All members are killed together: they are one program.
            write_if_there(directory, "memory.oom.group", "1")?;
        }
        let files = Files::open(directory, enforces)?;
        Ok(V2Cgroup { group, enforces, files })
    }

    fn directory(&self) -> &Directory {
        self.group.directory(0)
    }

    fn read_cpu_stat(&self) -> Result<parse::CpuStat, CgroupError> {
        self.files.cpu_stat.read_short(parse::cpu_stat, "a list with a line usage_usec")
    }

    fn read_io(&self) -> Option<(u64, u64)> {
        let text = self.files.io_stat.as_ref()?.read().ok()?;
        parse::io_stat(&text)
    }

    /// For kernels before 5.14, which have no `cgroup.kill`.
    pub(crate) fn kill_by_hand(&self) -> Result<(), CgroupError> {
        kill::kill_members(&self.group)
    }

    /// Waits until the last member has exited. The file announces that as priority data.
    fn wait_until_empty(&self) -> Result<(), CgroupError> {
        let events = self.directory().open_file("cgroup.events", OFlags::RDONLY)?;
        let deadline = Instant::now() + kill::KILL_DEADLINE;
        loop {
            let populated = events
                .read_short(|text| parse::keyed(text, "populated"), "a list with populated")?;
            if populated == 0 {
                return Ok(());
            }
            let ready =
                kill::wait_until_ready(&events, PollFlags::PRI, deadline).map_err(|errno| {
                    CgroupError::file("wait for the end of", self.directory().path(), errno)
                })?;
            if !ready {
                return Err(kill::still_alive(&self.group, self.processes()?));
            }
        }
    }
}

fn write_if_there(directory: &Directory, file: &str, text: &str) -> Result<(), CgroupError> {
    match directory.write(file, text) {
        Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

/// The path of a directory below the mount of cgroups that it is in.
fn below_mount(directory: &Path, mounts: &str) -> Option<String> {
    let below = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let is_whole = kind.starts_with("cgroup2 ") && root == "/";
        let below = directory.strip_prefix(place).ok().filter(|_| is_whole)?;
        Some(format!("/{}", below.to_str()?))
    };
    mounts.lines().find_map(below)
}

impl Cgroup for V2Cgroup {
    fn entry(&self) -> Result<Entry, CgroupError> {
        self.directory().duplicate().map(Entry::CloneInto)
    }

    fn set_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        limits.check(self.enforces)?;
        if let (Some(bytes), Some(file)) = (limits.memory_bytes, &self.files.memory_limit) {
            file.write(&bytes.to_string())?;
        }
        if let (Some(pids), Some(file)) = (limits.pids_for_kernel(), &self.files.pids_limit) {
            file.write(&pids.to_string())?;
        }
        if let (Some(quota), Some(file)) = (limits.quota_microseconds(), &self.files.cpu_limit) {
            file.write(&format!("{quota} {CPU_PERIOD_MICROSECONDS}"))?;
        }
        Ok(())
    }

    fn reset_peak(&self) -> Result<(), CgroupError> {
        let Some(peak) = &self.files.memory_peak else {
            return Ok(());
        };
        match peak.write("reset") {
            // The kernel is too old to reset; see the trait. The error is "invalid argument" if the
            // file is open for writing and "invalid seek" if it is not.
            Err(error) if matches!(error.errno(), Some(Errno::INVAL | Errno::SPIPE)) => Ok(()),
            outcome => outcome,
        }
    }

    fn usage(&self) -> Result<Usage, CgroupError> {
        let files = &self.files;
        let number =
            |file: &Option<ControlFile>| file.as_ref().map(ControlFile::read_number).transpose();
        let cpu = self.read_cpu_stat()?;
        let io = self.read_io();
        Ok(Usage {
            cpu_total: cpu.total,
            cpu_user: cpu.user,
            cpu_system: cpu.system,
            memory_current: number(&files.memory_current)?.unwrap_or(0),
            memory_peak: number(&files.memory_peak)?,
            pids_current: number(&files.pids_current)?.unwrap_or(0),
            pids_peak: number(&files.pids_peak)?,
            io_read_bytes: io.map(|(read, _)| read),
            io_write_bytes: io.map(|(_, written)| written),
        })
    }

    fn tasks(&self) -> Result<u64, CgroupError> {
        self.files.pids_current.as_ref().map_or(Ok(0), ControlFile::read_number)
    }

    fn cpu_total(&self) -> Result<Duration, CgroupError> {
        self.read_cpu_stat().map(|stat| stat.total)
    }

    fn set_background(&self, is_background: bool) -> Result<(), CgroupError> {
        background::set(self.directory(), is_background)
    }

    fn bind(&self, cpus: &CpuSet) -> Result<(), CgroupError> {
        affinity::bind(self.directory(), "cgroup.threads", cpus)
    }

    fn oom_kills(&self) -> Result<u64, CgroupError> {
        self.files.memory_events.as_ref().map_or(Ok(0), oom::kills)
    }

    fn oom_watch(&self) -> Result<Option<OomWatch>, CgroupError> {
        self.enforces.oom_events.then(|| OomWatch::v2(self.directory())).transpose()
    }

    fn path_for_runtimes(&self) -> Option<String> {
        // This process may have moved into a cgroup beside it.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        below_mount(self.directory().path(), &mounts)
    }

    fn make_child(&self, name: &str) -> Result<Box<dyn Cgroup>, CgroupError> {
        self.directory().write("cgroup.subtree_control", "+memory +pids +cpu")?;
        let group = Group::make_named(name, &self.group.directories())?;
        Ok(Box::new(Self::prepare(group, self.enforces)?))
    }

    fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        self.group.processes()
    }

    fn kill(&self) -> Result<(), CgroupError> {
        match self.directory().write("cgroup.kill", "1") {
            Ok(()) => self.wait_until_empty(),
            Err(error) if error.errno() == Some(Errno::NOENT) => self.kill_by_hand(),
            Err(error) => Err(error),
        }
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
