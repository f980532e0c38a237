use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::time::format_duration;
use crate::{ByteSize, Protection};

/// Resource limits of one stage.
///
/// Zero and absurd values are refused by every setter: "zero means unlimited" is a common cause of
/// accidents. A limit that the caller sets counts as requested: if the host cannot enforce it, the
/// execution is refused. A default that cannot be enforced is only listed in the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    wall_time: Duration,
    cpu_time: Option<Duration>,
    memory: ByteSize,
    cpus: f64,
    pids: u32,
    disk: ByteSize,
    inodes: u64,
    output: ByteSize,
    open_files: u32,
    requested: BTreeSet<Protection>,
}

/// A limit outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{limit} of {value} is outside the range {range}")]
pub struct InvalidLimit {
    limit: &'static str,
    value: String,
    range: String,
}

const TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(24);
/// A dynamic loader and its library do not fit in less than a megabyte.
const MEMORY: RangeInclusive<ByteSize> = ByteSize::mib(1)..=ByteSize::mib(1 << 20);
const CPUS: RangeInclusive<f64> = 0.01..=1024.0;
const PIDS: RangeInclusive<u32> = 1..=32_768;
const DISK: RangeInclusive<ByteSize> = ByteSize::kib(64)..=ByteSize::mib(1 << 20);
const OUTPUT: RangeInclusive<ByteSize> = ByteSize::bytes(1)..=ByteSize::mib(1 << 10);
/// Three standard descriptors and one to load a library with.
const OPEN_FILES: RangeInclusive<u32> = 4..=1_048_576;
/// The default of tmpfs, one inode for each page: ordinary programs reach the byte limit first.
const BYTES_PER_INODE: u64 = 4096;
const MIN_INODES: u64 = 64;

impl Limits {
    /// The defaults of the run stage.
    pub fn run() -> Self {
        Self {
            wall_time: Duration::from_secs(10),
            cpu_time: None,
            memory: ByteSize::mib(256),
            cpus: 1.0,
            pids: 64,
            disk: ByteSize::mib(64),
            inodes: inodes_for(ByteSize::mib(64)),
            output: ByteSize::mib(1),
            open_files: 256,
            requested: BTreeSet::new(),
        }
    }

    /// The defaults of the compile stage: compilers are larger and slower than most programs.
    pub fn compile() -> Self {
        Self {
            wall_time: Duration::from_secs(30),
            memory: ByteSize::mib(1024),
            disk: ByteSize::mib(256),
            inodes: inodes_for(ByteSize::mib(256)),
            ..Self::run()
        }
    }

    /// Sets the wall-clock time limit.
    pub fn with_wall_time(mut self, time: Duration) -> Result<Self, InvalidLimit> {
        self.wall_time = check_time("a wall time", time)?;
        self.requested.insert(Protection::WallTime);
        Ok(self)
    }

    /// Sets the CPU time limit of all processes together.
    pub fn with_cpu_time(mut self, time: Duration) -> Result<Self, InvalidLimit> {
        self.cpu_time = Some(check_time("a CPU time", time)?);
        self.requested.insert(Protection::CpuTime);
        Ok(self)
    }

    /// Sets the memory limit of all processes together.
    pub fn with_memory(mut self, memory: ByteSize) -> Result<Self, InvalidLimit> {
        self.memory = check("a memory limit", memory, &MEMORY)?;
        self.requested.insert(Protection::Memory);
        Ok(self)
    }

    /// Sets the CPU limit; fractions are allowed (0.5).
    pub fn with_cpus(mut self, cpus: f64) -> Result<Self, InvalidLimit> {
        self.cpus = check("a number of CPUs", cpus, &CPUS)?;
        self.requested.insert(Protection::Cpu);
        Ok(self)
    }

    /// Sets the maximum number of processes and threads.
    pub fn with_pids(mut self, pids: u32) -> Result<Self, InvalidLimit> {
        self.pids = check("a number of processes", pids, &PIDS)?;
        self.requested.insert(Protection::Pids);
        Ok(self)
    }

    /// Sets the maximum size of the work directory and `/tmp` together. The maximum number of files
    /// follows from it.
    pub fn with_disk(mut self, disk: ByteSize) -> Result<Self, InvalidLimit> {
        self.disk = check("a disk limit", disk, &DISK)?;
        self.inodes = inodes_for(disk);
        self.requested.insert(Protection::Disk);
        Ok(self)
    }

    /// Sets the maximum size of standard output and standard error together.
    pub fn with_output(mut self, output: ByteSize) -> Result<Self, InvalidLimit> {
        self.output = check("an output limit", output, &OUTPUT)?;
        self.requested.insert(Protection::Output);
        Ok(self)
    }

    /// Sets the maximum number of open descriptors of one process.
    pub fn with_open_files(mut self, open_files: u32) -> Result<Self, InvalidLimit> {
        self.open_files = check("a number of open files", open_files, &OPEN_FILES)?;
        self.requested.insert(Protection::OpenFiles);
        Ok(self)
    }

    /// Wall-clock time limit.
    pub fn wall_time(&self) -> Duration {
        self.wall_time
    }

    /// CPU time limit of all processes together, if there is one.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.cpu_time
    }

    /// Memory limit of all processes together.
    pub fn memory(&self) -> ByteSize {
        self.memory
    }

    /// CPU limit, in CPUs.
    pub fn cpus(&self) -> f64 {
        self.cpus
    }

    /// CPU limit in thousandths of a CPU, the unit of the kernel's quota.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked where the value is set"
    )]
    pub fn cpu_millis(&self) -> u32 {
        (self.cpus * 1000.0).round() as u32
    }

    /// Maximum number of processes and threads.
    pub fn pids(&self) -> u32 {
        self.pids
    }

    /// Maximum number of bytes on the writable file systems.
    pub fn disk(&self) -> ByteSize {
        self.disk
    }

    /// Maximum number of files, directories and links on the writable file systems.
    pub fn inodes(&self) -> u64 {
        self.inodes
    }

    /// Maximum number of bytes of output.
    pub fn output(&self) -> ByteSize {
        self.output
    }

    /// Maximum number of open descriptors of one process.
    pub fn open_files(&self) -> u32 {
        self.open_files
    }

    /// The same values, of which only those that `other` requested count as requested. For a
    /// language's defaults, which no caller requested.
    #[must_use]
    pub fn requested_like(mut self, other: &Self) -> Self {
        self.requested.clone_from(&other.requested);
        self
    }

    /// Whether the caller set this limit.
    pub fn is_requested(&self, protection: Protection) -> bool {
        self.requested.contains(&protection)
    }
}

fn inodes_for(disk: ByteSize) -> u64 {
    (disk.as_u64() / BYTES_PER_INODE).max(MIN_INODES)
}

fn check<T: PartialOrd + Copy + ToString>(
    limit: &'static str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<T, InvalidLimit> {
    if range.contains(&value) {
        return Ok(value);
    }
    let range = format!("{} to {}", range.start().to_string(), range.end().to_string());
    Err(InvalidLimit { limit, value: value.to_string(), range })
}

fn check_time(limit: &'static str, value: Duration) -> Result<Duration, InvalidLimit> {
    if TIME.contains(&value) {
        return Ok(value);
    }
    let range = format!("{} to {}", format_duration(*TIME.start()), format_duration(*TIME.end()));
    Err(InvalidLimit { limit, value: format_duration(value), range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_never_means_unlimited() {
        let limits = Limits::run;
        assert!(limits().with_wall_time(Duration::ZERO).is_err());
        assert!(limits().with_cpu_time(Duration::ZERO).is_err());
        assert!(limits().with_memory(ByteSize::bytes(0)).is_err());
        assert!(limits().with_cpus(0.0).is_err());
        assert!(limits().with_cpus(f64::NAN).is_err());
        assert!(limits().with_pids(0).is_err());
        assert!(limits().with_disk(ByteSize::bytes(0)).is_err());
        assert!(limits().with_output(ByteSize::bytes(0)).is_err());
        assert!(limits().with_open_files(0).is_err());
    }

    #[test]
    fn the_message_names_the_limit_the_value_and_the_range() {
        let error = Limits::run().with_pids(0).unwrap_err().to_string();
        assert_eq!(error, "a number of processes of 0 is outside the range 1 to 32768");
    }

    #[test]
    fn only_what_the_caller_set_counts_as_asked_for() {
        let limits = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
        assert!(limits.is_requested(Protection::Memory));
        assert!(!limits.is_requested(Protection::Pids));
    }
}
