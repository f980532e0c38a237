use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::{
    BackendError, CancelToken, Ending, Feature, Observer, ProcessSpec, RelativePath, StageUsage,
    Violation,
};

/// A sandbox that lives until it is killed or dropped. Its limits hold for all of its processes
/// together; each process is confined like that of a one-shot execution.
pub trait Instance: Send + Sync {
    /// Starts a process. Any number may run, one after another and at once.
    fn start(
        &self,
        spec: ProcessSpec,
        limits: ProcessLimits,
    ) -> Result<Box<dyn Process + '_>, BackendError>;

    /// Writes a file in the work directory, and creates the directories above it.
    fn put(
        &self,
        path: &RelativePath,
        contents: &[u8],
        executable: bool,
    ) -> Result<(), BackendError>;

    /// Reads a file in the work directory; a larger one than `max_bytes` is refused.
    fn get(&self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, BackendError>;

    /// Lists a directory below the work directory; `None` is the work directory itself.
    fn list(&self, path: Option<&RelativePath>) -> Result<Vec<DirectoryEntry>, BackendError>;

    /// Removes a file or a directory with everything below it.
    fn remove(&self, path: &RelativePath) -> Result<(), BackendError>;

    /// What all processes have used so far.
    fn usage(&self) -> Result<InstanceUsage, BackendError>;

    /// Stops all processes where they are.
    fn pause(&self) -> Result<(), BackendError> {
        Err(BackendError::Unsupported(Feature::Pause))
    }

    /// Lets paused processes go on.
    fn resume(&self) -> Result<(), BackendError> {
        Err(BackendError::Unsupported(Feature::Pause))
    }

    /// Connects to a TCP port that a process listens on.
    fn connect(&self, port: u16) -> Result<OwnedFd, BackendError> {
        let _ = port;
        Err(BackendError::Unsupported(Feature::Connect))
    }

    /// Saves the whole sandbox, to be restored later.
    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        Err(BackendError::Unsupported(Feature::Snapshot))
    }

    /// Kills every process and destroys the sandbox.
    fn kill(&self) -> Result<(), BackendError>;
}

/// A process that was started in an instance. Dropping it kills it and what it started.
pub trait Process: Send + Sync {
    /// Supervises until the process and everything it started have ended; once. Its own limits are
    /// enforced while somebody waits.
    fn wait(
        &self,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<ProcessOutcome, BackendError>;

    /// Sends a signal to the process.
    fn signal(&self, signal: i32) -> Result<(), BackendError>;

    /// Sets the size of its terminal.
    fn resize(&self, columns: u16, rows: u16) -> Result<(), BackendError> {
        let _ = (columns, rows);
        Err(BackendError::Unsupported(Feature::Terminal))
    }
}

/// Limits of one process and what it starts, within those of its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Wall-clock time; `None` for no limit.
    pub wall_time: Option<Duration>,
    /// CPU time; `None` for no limit.
    pub cpu_time: Option<Duration>,
    /// Bytes of standard output and standard error together that are kept; more ends the process.
    pub output_bytes: usize,
}

/// How a process of an instance ended.
#[derive(Debug)]
pub struct ProcessOutcome {
    /// How it ended.
    pub ending: Ending,
    /// What it used, as far as it can be told from its neighbours in the same sandbox; 0 where it
    /// cannot.
    pub usage: StageUsage,
    /// The beginning of its standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// System calls that were denied.
    pub violations: Vec<Violation>,
}

/// What all processes of an instance used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceUsage {
    /// CPU time since the sandbox was created.
    pub cpu_time: Duration,
    /// Memory in use, in bytes.
    pub memory_bytes: u64,
    /// Processes and threads that exist.
    pub processes: u64,
}

/// A name in a directory of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name, as the program wrote it.
    pub name: Vec<u8>,
    /// Type and permissions, as `st_mode` has them.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
}
