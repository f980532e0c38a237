//! One container of the Engine's, from its creation to its removal.

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
use sandbox_linux::empty_network;
use sandbox_linux::restrict::restrict;
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;

use super::description::{AGENT_INSIDE, Description, OWN_FILES};
use super::engine::Engine;
use super::{Docker, failed};
use crate::guest::{Channel, Container, Heard, InodeCover, Kernel, Purpose, is_populated};
use crate::oci::ids::Range;

/// A container that has not begun by then never will.
const START_TIME: Duration = Duration::from_mins(1);
/// How long the Engine may take to remove one that has ended.
const END_TIME: Duration = Duration::from_secs(30);
/// What our cgroup is called. A program can see the name.
const OURS: &str = "program";

/// A container in which an agent waits for its order.
pub(super) struct DockerContainer {
    docker: Arc<Docker>,
    id: String,
    /// Its first process on the host.
    agent: u32,
    /// Holds the one below it, whose name tells nothing.
    around: Option<Box<dyn Cgroup>>,
    cgroup: Option<Box<dyn Cgroup>>,
    /// Memory that its kernel has taken in our cgroup.
    own_memory: u64,
    channel: Option<Channel>,
    ids: Range,
    shared_inodes: SharedInodes,
}

impl DockerContainer {
    /// Has the Engine make and start one, and waits until its agent is ready.
    pub(super) fn start(docker: &Arc<Docker>, purpose: &Purpose) -> Result<Self, BackendError> {
        let ids = docker.state.ids.take();
        let ids = ids.ok_or_else(|| failed("start a container", "there are too many of them"))?;
        let kernel = docker.runtime.kernel;
        // Where the agent is another user than the program, both are the container's own business.
        let user = kernel.inside().user.unwrap_or(ids.first);
        let lists = docker.state.lists_with(ids.first, user);
        let description = Description {
            image: &docker.image.name,
            purpose,
            agent: &docker.state.agent(),
            lists: &lists.map_err(|error| failed("list the users of a container", error))?,
            shown: &docker.image.shown,
            user,
            runtime: &docker.runtime,
            owner: &docker.state.owner(),
            filter: &docker.filter,
        };
        let body = description.write();
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
        // From here on dropping it cleans up.
        container.begin(purpose)?;
        // And from here on the container ends when we do.
        drop(pending);
        Ok(container)
    }

    fn begin(&mut self, purpose: &Purpose) -> Result<(), BackendError> {
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
        match channel.wait(START_TIME) {
            Ok(Heard::Message(message))
                if AgentEvent::decode(&message) == Ok(AgentEvent::Ready) => {}
            Ok(_) => return Err(failed("start the container", "its agent is not ours")),
            Err(error) => return Err(failed("wait for the container", error)),
        }
        let agent = details.state.and_then(|state| state.pid).and_then(|pid| pid.try_into().ok());
        self.agent = agent.filter(|agent| *agent > 0).ok_or_else(|| {
            failed(
                "find the container's process",
                "the Engine does not tell, or is not on this host",
            )
        })?;
        if purpose.network == NetworkPolicy::None {
            // The runtime brought the loopback interface up.
            let silenced = empty_network::silence(self.agent);
            silenced.map_err(|error| failed("take the network down", error))?;
        }
        if self.docker.runtime.kernel == Kernel::Host {
            let restricted = restrict(self.agent);
            restricted.map_err(|error| failed("restrict what the container shows", error))?;
        }
        self.cover_inodes(purpose)?;
        self.admit(purpose)?;
        self.channel = Some(channel);
        Ok(())
    }

    /// Gives it inodes of its own for what it shows. Its root has its own: it is a mount that the Engine made for it.
    fn cover_inodes(&mut self, purpose: &Purpose) -> Result<(), BackendError> {
        if !self.docker.has_own_inodes {
            return Ok(());
        }
        let cover = InodeCover {
            shown: &self.docker.image.shown,
            empty: &self.docker.state.empty(),
            agent: &[AGENT_INSIDE],
            own: OWN_FILES,
        };
        self.shared_inodes = cover.apply(self.agent, purpose)?;
        Ok(())
    }

    /// Puts the container where we limit and count. The Engine removes its own cgroup as soon as a container ends, before we
    /// could read why it did.
    fn admit(&mut self, purpose: &Purpose) -> Result<(), BackendError> {
        let around = self.docker.hierarchy.create();
        let around = around.map_err(|error| failed("make a cgroup", error))?;
        let made = around.make_child(OURS);
        self.around = Some(around);
        let cgroup = self.cgroup.insert(made.map_err(|error| failed("make a cgroup", error))?);
        let entry = cgroup.entry().map_err(|error| failed("open the cgroup", error))?;
        let kernel = self.docker.runtime.kernel;
        let admitted = match kernel {
            // The agent is the only process there.
            Kernel::Host => entry.admit(self.agent).map_err(io::Error::from),
            Kernel::Gvisor => admit_all(&entry, &self.id, self.agent),
        };
        admitted.map_err(|error| failed("put the container into its cgroup", error))?;
        let mut limits = kernel.limits(purpose);
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

/// Moves every process of a container of gVisor's, which the Engine has put into a cgroup that is named after it. What they start
/// is where they are: when the first is moved and nobody is left, nobody comes any more.
fn admit_all(entry: &Entry, id: &str, first: u32) -> io::Result<()> {
    let deadline = Instant::now() + START_TIME;
    let mut left = processes_in(id)?;
    if !left.contains(&first) {
        return Err(io::Error::other("its runtime keeps it in no cgroup of its own"));
    }
    while !left.is_empty() {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for process in left {
            match entry.admit(process) {
                // It has ended meanwhile, or is about to.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        left = processes_in(id)?;
    }
    Ok(())
}

/// Ends what gVisor's runtime leaves of a container that it could not start, and that nobody else ends.
fn kill_all(id: &str) {
    let processes = processes_in(id).unwrap_or_default().into_iter();
    for process in processes.filter_map(|process| Pid::from_raw(process.try_into().ok()?)) {
        // One that has ended meanwhile is what was wanted.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Has the Engine remove a container, and waits until it is gone.
pub(super) fn remove(engine: &Engine, id: &str) -> Result<(), Error> {
    let deadline = Instant::now() + END_TIME;
    loop {
        let (client, name) = (engine.docker.clone(), id.to_owned());
        let removed = engine.ask(async move {
            let all = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            client.remove_container(&name, Some(all)).await
        });
        match removed {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(()),
            // It is being removed because it ended, or it is gone now, which the next question tells.
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

    fn kill(&self) {
        // The kernel cannot refuse it to whoever made the cgroup.
        let _ = self.cgroup().kill();
    }

    fn agent(&self) -> Option<u32> {
        (self.docker.runtime.kernel == Kernel::Host).then_some(self.agent)
    }

    fn program_id(&self) -> u32 {
        self.ids.first
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
    /// Nothing of it is left, whatever it was at.
    fn drop(&mut self) {
        drop(self.channel.take());
        if self.cgroup.is_none() && self.docker.runtime.kernel == Kernel::Gvisor {
            kill_all(&self.id);
        }
        for cgroup in [self.cgroup.take(), self.around.take()].into_iter().flatten() {
            let _ = cgroup.kill();
            let _ = cgroup.dissolve();
        }
        // What cannot be removed is removed by the next start.
        let _ = remove(&self.docker.engine, &self.id);
    }
}
