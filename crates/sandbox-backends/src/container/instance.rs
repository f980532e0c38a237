//! A container for any number of processes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sandbox_core::{
    BackendError, CancelToken, DirectoryEntry, Feature, Instance, InstanceUsage, NetworkPolicy,
    Process, ProcessLimits, ProcessSpec, Protection, RelativePath, SandboxSpec,
};
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::{AgentEvent, AgentRequest};
use sandbox_protocol::exec::ExecFile;

use super::channel::{Channel, Received};
use super::connection::Connection;
use super::containers::Containers;
use super::exec_request::ExecEncoder;
use super::pool::ContainerFactory;
use super::process::ContainerProcess;
use super::spec::MAX_CONNECTIONS;
use super::supervise::Container;
use super::{inodes, volumes};
use crate::error::failed;
use crate::process_tree;
use crate::supervise::{
    BUILD_TIMEOUT, Cause, InstanceInit, InstanceLimits, KillReason, LockLimit, NetworkMemory,
    UNACCEPTED_BYTES_BY_DEFAULT, refuse_unenforced,
};

/// Maximum time for an operation on a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of names in a directory that is listed.
const MAX_NAMES: usize = 200_000;
/// The protocol's bytes around a file's contents.
const MAX_HEADER_BYTES: usize = 64;

/// An instance: a container until it is killed.
pub(super) struct ContainerInstance<'a, F: ContainerFactory> {
    containers: &'a Containers<F>,
    /// `None` once it is killed.
    live: Mutex<Option<Arc<LiveContainer<F::Container>>>>,
}

/// The container of an instance, shared with its processes. Dropped by the last of them, it is
/// removed.
pub(super) struct LiveContainer<C> {
    /// First, because they watch the cgroup.
    _limits: InstanceLimits,
    pub(super) container: C,
    pub(super) sandbox: SandboxSpec,
    pub(super) agent: Arc<InstanceInit>,
    /// The connection to process 1, which only opens connections.
    control: Mutex<Channel>,
    files: Mutex<Option<Connection>>,
    connections: AtomicU32,
}

impl<'a, F: ContainerFactory<Container: Container>> ContainerInstance<'a, F> {
    pub(super) fn create(
        containers: &'a Containers<F>,
        mut sandbox: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Self, BackendError> {
        if !containers.capabilities.features.contains(&Feature::Instances) {
            return Err(BackendError::Unsupported(Feature::Instances));
        }
        refuse_unenforced(&sandbox)?;
        if sandbox.workspace.is_some() {
            let reason = "containers for several processes have no workspaces";
            return Err(BackendError::Refused(reason.to_owned()));
        }
        let spec = containers.spec_of(&sandbox)?.for_instance();
        if cancel.is_cancelled() {
            return Err(failed("create the sandbox", "it was cancelled"));
        }
        let mut container = containers.pool.claim(&spec)?.into_container();
        let mut control = container.take_channel()?;
        inodes::check(container.shared_inodes(), &sandbox)?;
        volumes::attach(&sandbox, None, &container)?;
        let user = container.program_id_inside();
        let frame = ExecEncoder::write_serve(&sandbox, user)?;
        control.send_frame(&frame).map_err(|error| failed("send the files to the agent", error))?;
        wait_until_ready(&mut control)?;
        let agent = container.agent();
        let agent = agent.ok_or_else(|| failed("find the agent", "its process is not known"))?;
        let lock_limit = match LockLimit::start(agent, sandbox.limits.memory().as_u64()) {
            Ok(limit) => Some(limit),
            Err(_) if sandbox.allow_missing.contains(&Protection::Memory) => None,
            Err(error) => return Err(failed("count the file locks of the container", error)),
        };
        let network_memory = (sandbox.network != NetworkPolicy::None).then(|| {
            let limit = sandbox.limits.memory().as_u64();
            let now = Instant::now();
            let cgroup = container.cgroup();
            NetworkMemory::new(now, cgroup, Some(agent), UNACCEPTED_BYTES_BY_DEFAULT, limit)
        });
        let agent = open_process(agent).map_err(|error| failed("find the agent", error))?;
        let agent = InstanceInit::new(agent);
        let limits = InstanceLimits::enforce(&agent, lock_limit, network_memory)?;
        // They are inside now.
        sandbox.files = Vec::new();
        sandbox.artefacts = Arc::default();
        let live = LiveContainer {
            _limits: limits,
            container,
            sandbox,
            agent,
            control: Mutex::new(control),
            files: Mutex::new(None),
            connections: AtomicU32::new(0),
        };
        Ok(Self { containers, live: Mutex::new(Some(Arc::new(live))) })
    }

    fn live(&self) -> Result<Arc<LiveContainer<F::Container>>, BackendError> {
        let live = lock(&self.live).clone();
        let live = live.filter(|live| live.kill_reason().is_none());
        live.ok_or_else(|| failed("use the sandbox", "it was killed"))
    }

    /// Sends a request about a file and lets `receive` read the answer.
    fn with_files<T>(
        &self,
        step: &str,
        request: &AgentRequest<'_>,
        max_answer_bytes: usize,
        receive: impl FnOnce(&mut Connection) -> io::Result<Result<T, String>>,
    ) -> Result<T, BackendError> {
        let live = self.live()?;
        let mut files = lock(&live.files);
        let mut connection = match files.take() {
            Some(connection) => connection,
            None => live.connect()?.0,
        };
        connection.max_message_bytes = connection.max_message_bytes.max(max_answer_bytes);
        let answer = connection.send(request).and_then(|()| receive(&mut connection));
        let answer = answer.map_err(|error| failed(step, error))?;
        // After an error, the next request gets another connection.
        *files = Some(connection);
        answer.map_err(|reason| BackendError::Refused(format!("{step}: {reason}")))
    }
}

impl<F: ContainerFactory<Container: Container + Sync>> Instance for ContainerInstance<'_, F> {
    fn start(
        &self,
        spec: ProcessSpec,
        limits: ProcessLimits,
    ) -> Result<Box<dyn Process + '_>, BackendError> {
        let live = self.live()?;
        let user = live.container.program_id_inside();
        let encoder = &self.containers.exec_encoder;
        let exec = encoder.write_process(&live.sandbox, &spec, limits.cpu_time, user)?;
        let process = ContainerProcess::start(encoder, live, &exec, &spec, limits)?;
        Ok(Box::new(process))
    }

    fn put(
        &self,
        path: &RelativePath,
        contents: &[u8],
        executable: bool,
    ) -> Result<(), BackendError> {
        let file = ExecFile { path: path.as_str(), contents, executable };
        let step = format!("write the file {}", path.as_str());
        self.with_files(&step, &AgentRequest::PutFile(file), 0, receive_done)
    }

    fn get(&self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, BackendError> {
        let request = AgentRequest::GetFile { max_bytes, path: path.as_str().as_bytes() };
        let step = format!("read the file {}", path.as_str());
        let max_answer = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let max_answer = max_answer.saturating_add(MAX_HEADER_BYTES);
        self.with_files(&step, &request, max_answer, |connection| {
            match AgentEvent::decode(&receive(connection)?) {
                Ok(AgentEvent::FileContents(contents)) if contents.len() as u64 <= max_bytes => {
                    Ok(Ok(contents.to_vec()))
                }
                Ok(AgentEvent::FileUnavailable(reason)) => Ok(Err(reason)),
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        })
    }

    fn list(&self, path: Option<&RelativePath>) -> Result<Vec<DirectoryEntry>, BackendError> {
        let path = path.map_or("", RelativePath::as_str);
        let step = format!("list the directory {}", if path.is_empty() { "." } else { path });
        let request = AgentRequest::ListDirectory(path.as_bytes());
        self.with_files(&step, &request, 0, |connection| {
            let mut entries: Vec<DirectoryEntry> = Vec::new();
            while entries.len() <= MAX_NAMES {
                match AgentEvent::decode(&receive(connection)?) {
                    Ok(AgentEvent::FileEntry { mode, size, path }) => {
                        entries.push(DirectoryEntry { name: path.to_vec(), mode, size });
                    }
                    Ok(AgentEvent::FileListEnd) => {
                        entries.sort_by(|left, right| left.name.cmp(&right.name));
                        return Ok(Ok(entries));
                    }
                    Ok(AgentEvent::FileUnavailable(reason)) => return Ok(Err(reason)),
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
            Err(io::Error::other(format!("more than {MAX_NAMES} names")))
        })
    }

    fn remove(&self, path: &RelativePath) -> Result<(), BackendError> {
        let request = AgentRequest::RemoveFile(path.as_str().as_bytes());
        let step = format!("remove the file {}", path.as_str());
        self.with_files(&step, &request, 0, receive_done)
    }

    fn usage(&self) -> Result<InstanceUsage, BackendError> {
        let live = self.live()?;
        let cgroup = live.container.cgroup();
        let usage =
            cgroup.usage().map_err(|error| failed("read what the container used", error))?;
        let agent = 1 + u64::from(live.connections.load(Ordering::Relaxed));
        Ok(InstanceUsage {
            cpu_time: usage.cpu_total,
            memory_bytes: usage.memory_current,
            processes: usage.pids_current.saturating_sub(agent),
        })
    }

    /// If processes are being waited for, the last wait that returns removes the container.
    fn kill(&self) -> Result<(), BackendError> {
        if let Some(live) = lock(&self.live).take() {
            live.kill(KillReason::Cause(Cause::Cancelled));
        }
        Ok(())
    }
}

impl<F: ContainerFactory> Drop for ContainerInstance<'_, F> {
    fn drop(&mut self) {
        // Its processes borrow the instance, so they are gone: this removes the container.
        lock(&self.live).take();
    }
}

impl<C: Container> LiveContainer<C> {
    /// Opens a connection. Also returns the process of the shim at its other end, if it can be told
    /// from others.
    pub(super) fn connect(&self) -> Result<(Connection, Option<u32>), BackendError> {
        let mut control = lock(&self.control);
        if self.connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            let reason = format!("more than {} processes at once", MAX_CONNECTIONS - 1);
            return Err(BackendError::Refused(reason));
        }
        let agent = self.container.agent().unwrap_or_default();
        let before = process_tree::children(agent);
        let opened = Connection::open(&mut control, self.agent.process());
        let connection = opened.map_err(|error| {
            // It is not known what the agent does.
            self.kill(KillReason::Failure);
            failed("connect to the agent", error)
        })?;
        let mut new = process_tree::children(agent);
        new.retain(|child| !before.contains(child));
        let process = new.first().copied().filter(|_| new.len() == 1);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok((connection, process))
    }

    pub(super) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Kills every process. The first reason is what those that wait return.
    pub(super) fn kill(&self, reason: KillReason) {
        self.agent.kill(reason);
        self.container.kill();
    }

    /// Why everything was killed, if it was.
    pub(super) fn kill_reason(&self) -> Option<KillReason> {
        self.agent.kill_reason()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_process(process: u32) -> io::Result<OwnedFd> {
    let process = process.try_into().ok().and_then(Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

fn wait_until_ready(control: &mut Channel) -> Result<(), BackendError> {
    const STEP: &str = "have the agent write the files";
    match control.wait(BUILD_TIMEOUT).map_err(|error| failed(STEP, error))? {
        Received::Message(message) => match AgentEvent::decode(&message) {
            Ok(AgentEvent::Ready) => Ok(()),
            Ok(AgentEvent::Failed(failure)) => {
                let cause = io::Error::from_raw_os_error(failure.errno);
                Err(failed(STEP, format!("{}: {cause}", failure.step)))
            }
            _ => Err(failed(STEP, "unexpected message")),
        },
        _ => Err(failed(STEP, "the container ended")),
    }
}

fn receive(connection: &mut Connection) -> io::Result<Vec<u8>> {
    match connection.wait(FILE_TIMEOUT)? {
        Received::Message(message) => Ok(message),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn receive_done(connection: &mut Connection) -> io::Result<Result<(), String>> {
    match AgentEvent::decode(&receive(connection)?) {
        Ok(AgentEvent::FileDone) => Ok(Ok(())),
        Ok(AgentEvent::FileUnavailable(reason)) => Ok(Err(reason)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
