//! One container of a Docker Engine, from creation to removal.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::errors::Error;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use sandbox_core::{BackendError, NetworkPolicy};
use sandbox_linux::cgroup::{Cgroup, Entry, processes_in};
use sandbox_linux::container_inodes::SharedInodes;
use sandbox_linux::restrict::restrict;
use sandbox_linux::{empty_network, ipc_limits};
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;

use super::create_request::{AGENT_INSIDE, CreateRequest, OWN_FILES};
use super::engine::Engine;
use super::{Docker, failed};
use crate::container::{
    Channel, Container, ContainerSpec, InodeCover, Kernel, Received, is_populated,
};
use crate::oci::ids::Range;

/// Maximum time for a container to start.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum time for the Engine to remove a container that has ended.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the inner cgroup, which programs can see.
const OURS: &str = "program";

/// A container in which an agent waits for a request.
pub(super) struct DockerContainer {
    docker: Arc<Docker>,
    id: String,
    /// Its first process on the host.
    agent: u32,
    /// The parent of `cgroup`; its name identifies the owner.
    around: Option<Box<dyn Cgroup>>,
    cgroup: Option<Box<dyn Cgroup>>,
    /// Memory that the container's kernel uses in the cgroup.
    own_memory: u64,
    channel: Option<Channel>,
    ids: Range,
    shared_inodes: SharedInodes,
}

impl DockerContainer {
    /// Creates and starts a container, and waits until its agent is ready.
    pub(super) fn start(docker: &Arc<Docker>, spec: &ContainerSpec) -> Result<Self, BackendError> {
        let ids = docker.state.ids.take();
        let ids = ids.ok_or_else(|| failed("start a container", "there are too many of them"))?;
        let kernel = docker.runtime.kernel;
        // If the agent runs as another user than the program, the container has user names of its
        // own.
        let user = kernel.inside().user.unwrap_or(ids.first);
        let lists = docker.state.lists_with(ids.first, user);
        let request = CreateRequest {
            image: &docker.image.name,
            spec,
            agent: &docker.state.agent(),
            lists: &lists.map_err(|error| failed("list the users of a container", error))?,
            shown: &docker.image.shown,
            user,
            runtime: &docker.runtime,
            owner: &docker.state.owner(),
            filter: &docker.filter,
        };
        let body = request.write();
        let client = docker.engine.docker.clone();
        let pending = docker.state.announce();
        let pending = pending.map_err(|error| failed("announce a container", error))?;
        let options = CreateContainerOptionsBuilder::new().name(pending.name()).build();
        let made = docker.engine.wait("make a container", async move {
            client.create_container(Some(options), body).await
        })?;
        let mut container = Self {
            docker: Arc::clone(docker),
            id: made.id,
            agent: 0,
            around: None,
            cgroup: None,
            own_memory: 0,
            channel: None,
            ids,
            shared_inodes: SharedInodes::default(),
        };
        // From here on, dropping it removes the container.
        container.begin(spec)?;
        // And from here on the container ends with this process.
        drop(pending);
        Ok(container)
    }

    fn begin(&mut self, spec: &ContainerSpec) -> Result<(), BackendError> {
        let engine = &self.docker.engine;
        let (client, id) = (engine.docker.clone(), self.id.clone());
        let streams = engine.wait("attach to the container", async move {
            let all = AttachContainerOptionsBuilder::new().stream(true).stdin(true).stdout(true);
            client.attach_container(&id, Some(all.build())).await
        })?;
        let bridged =
            engine.bridge(streams).and_then(|(input, output)| Channel::new(input, output));
        let mut channel = bridged.map_err(|error| failed("talk to the agent", error))?;
        let (client, id) = (engine.docker.clone(), self.id.clone());
        let details = engine.wait("start the container", async move {
            client.start_container(&id, None::<StartContainerOptions>).await?;
            client.inspect_container(&id, None).await
        })?;
        match channel.wait(START_TIMEOUT) {
            Ok(Received::Message(message))
                if AgentEvent::decode(&message) == Ok(AgentEvent::Ready) => {}
            Ok(_) => {
                return Err(failed("start the container", "unexpected message from its agent"));
            }
            Err(error) => return Err(failed("wait for the container", error)),
        }
        let agent = details.state.and_then(|state| state.pid).and_then(|pid| pid.try_into().ok());
        self.agent = agent.filter(|agent| *agent > 0).ok_or_else(|| {
            failed(
                "find the container's process",
                "the Engine does not tell, or is not on this host",
            )
        })?;
        if spec.network == NetworkPolicy::None {
            // The runtime set the loopback interface up.
            let silenced = empty_network::silence(self.agent);
            silenced.map_err(|error| failed("set the loopback interface down", error))?;
        }
        if self.docker.runtime.kernel == Kernel::Host {
            let restricted = restrict(self.agent);
            restricted.map_err(|error| failed("restrict what the container shows", error))?;
            let bounded = ipc_limits::set_for(self.agent);
            bounded.map_err(|error| failed("bound System V IPC in the container", error))?;
        }
        self.cover_inodes(spec)?;
        self.admit(spec)?;
        self.channel = Some(channel);
        Ok(())
    }

    /// Gives the container inodes of its own for what it shows. Its root has its own: it is a mount
    /// that the Engine made for it.
    fn cover_inodes(&mut self, spec: &ContainerSpec) -> Result<(), BackendError> {
        if !self.docker.has_own_inodes {
            return Ok(());
        }
        let cover = InodeCover {
            shown: &self.docker.image.shown,
            empty: &self.docker.state.empty(),
            agent: &[AGENT_INSIDE],
            own: OWN_FILES,
        };
        self.shared_inodes = cover.apply(self.agent, spec)?;
        Ok(())
    }

    /// Moves the container into a cgroup of this process. The Engine removes its own as soon as a
    /// container ends, before its counters could be read.
    fn admit(&mut self, spec: &ContainerSpec) -> Result<(), BackendError> {
        let around = self.docker.hierarchy.create();
        let around = around.map_err(|error| failed("make a cgroup", error))?;
        let made = around.make_child(OURS);
        self.around = Some(around);
        let cgroup = self.cgroup.insert(made.map_err(|error| failed("make a cgroup", error))?);
        let entry = cgroup.entry().map_err(|error| failed("open the cgroup", error))?;
        let kernel = self.docker.runtime.kernel;
        let admitted = match kernel {
            // The agent is the only process in it.
            Kernel::Host => entry.admit(self.agent).map_err(io::Error::from),
            Kernel::Gvisor => admit_all(&entry, &self.id, self.agent),
        };
        admitted.map_err(|error| failed("put the container into its cgroup", error))?;
        let mut limits = kernel.limits(spec);
        if kernel == Kernel::Gvisor {
            let usage = cgroup.usage();
            let usage = usage.map_err(|error| failed("read what the container used", error))?;
            self.own_memory = usage.memory_current;
            limits = limits.with_more_memory(self.own_memory);
        }
        let limited = cgroup.set_limits(&limits);
        limited.map_err(|error| failed("set the limits of the container", error))
    }

    /// Whether its agent still waits.
    pub(super) fn is_waiting(&mut self) -> bool {
        self.channel.as_mut().is_some_and(Channel::is_quiet) && is_populated(self)
    }
}

/// Moves every process of a gVisor container, which the Engine put into a cgroup named after it.
/// Children start in their parent's cgroup: once the first is moved and the old cgroup is empty, it
/// stays empty.
fn admit_all(entry: &Entry, id: &str, first: u32) -> io::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut left = processes_in(id)?;
    if !left.contains(&first) {
        return Err(io::Error::other("its runtime created no cgroup for it"));
    }
    while !left.is_empty() {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for process in left {
            match entry.admit(process) {
                // It has exited meanwhile, or is about to.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        left = processes_in(id)?;
    }
    Ok(())
}

/// Kills what gVisor's runtime leaves of a container that it could not start.
fn kill_all(id: &str) {
    let processes = processes_in(id).unwrap_or_default().into_iter();
    for process in processes.filter_map(|process| Pid::from_raw(process.try_into().ok()?)) {
        // It may have exited already.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Asks the Engine to remove a container, and waits until it is gone.
pub(super) fn remove(engine: &Engine, id: &str) -> Result<(), Error> {
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    loop {
        let (client, name) = (engine.docker.clone(), id.to_owned());
        let removed = engine.ask(async move {
            let all = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            client.remove_container(&name, Some(all)).await
        });
        match removed {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(()),
            // It is being removed because it ended, or is gone; the next query tells.
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 409, .. })
                if Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

impl Container for DockerContainer {
    fn cgroup(&self) -> &dyn Cgroup {
        self.cgroup.as_deref().expect("it is there until the container is dropped")
    }

    fn take_channel(&mut self) -> Result<Channel, BackendError> {
        self.channel.take().ok_or_else(|| failed("talk to the agent", "somebody does"))
    }

    fn agent(&self) -> Option<u32> {
        (self.docker.runtime.kernel == Kernel::Host).then_some(self.agent)
    }

    fn program_id(&self) -> u32 {
        self.ids.first
    }

    fn program_id_inside(&self) -> u32 {
        // If the agent runs as another user than the program, the container has user names of its
        // own.
        self.docker.runtime.kernel.inside().user.unwrap_or(self.ids.first)
    }

    fn shared_inodes(&self) -> &SharedInodes {
        &self.shared_inodes
    }

    fn own_processes(&self) -> Option<u64> {
        self.docker.runtime.kernel.own_processes()
    }

    fn own_memory(&self) -> u64 {
        self.own_memory
    }
}

impl Drop for DockerContainer {
    /// Removes everything, whatever state it is in.
    fn drop(&mut self) {
        drop(self.channel.take());
        if self.cgroup.is_none() && self.docker.runtime.kernel == Kernel::Gvisor {
            kill_all(&self.id);
        }
        for cgroup in [self.cgroup.take(), self.around.take()].into_iter().flatten() {
            let _ = cgroup.kill();
            let _ = cgroup.dissolve();
        }
        // What cannot be removed now is removed by the next start.
        let _ = remove(&self.docker.engine, &self.id);
    }
}
