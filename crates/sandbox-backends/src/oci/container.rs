//! One container of an OCI runtime, from its bundle to its removal.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox_core::{BackendError, NetworkPolicy};
use sandbox_linux::cgroup::{Cgroup, CgroupLimits, remove_everywhere};
use sandbox_linux::container_inodes::SharedInodes;
use sandbox_linux::{ipc_limits, private_mounts};
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;

use super::Oci;
use super::bundle::{AGENT_INSIDE, BundleConfig, outside};
use super::ids::Range;
use super::state::places_for;
use crate::container::{
    Channel, Container, ContainerSpec, InodeCover, Kernel, Received, USER, is_populated,
};
use crate::error::failed;

/// Maximum time for a container to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for the runtime to notice the end of its container.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The names of the cgroup that the runtime puts the container into, and of the one that it is
/// moved to. Programs can see the second.
const OF_RUNTIME: &str = "start";
const OURS: &str = "program";

/// A container in which an agent waits for a request.
pub(super) struct OciContainer {
    oci: Arc<Oci>,
    way: &'static str,
    bundle: PathBuf,
    name: String,
    /// The parent of the other two: the runtime's, and this process's.
    around: Option<Box<dyn Cgroup>>,
    cgroup: Option<Box<dyn Cgroup>>,
    limits: CgroupLimits,
    /// Memory that the runtime uses in the cgroup.
    own_memory: u64,
    child: Option<Child>,
    channel: Option<Channel>,
    stderr: Option<ChildStderr>,
    agent: Option<u32>,
    /// Open until the runtime has opened it.
    network: Option<OwnedFd>,
    ids: Range,
    shared_inodes: SharedInodes,
}

impl OciContainer {
    /// Starts a container, and waits until its agent is ready.
    pub(super) fn start(
        oci: &Arc<Oci>,
        way: &'static str,
        spec: &ContainerSpec,
    ) -> Result<Self, BackendError> {
        let Oci { runtime, hierarchy, state, ids, .. } = &**oci;
        let ids =
            ids.take().ok_or_else(|| failed("start a container", "there are too many of them"))?;
        let around = hierarchy.create().map_err(|error| failed("make a cgroup", error))?;
        let cgroup = around.make_child(OURS).map_err(|error| failed("make a cgroup", error))?;
        let limits = runtime.kind.kernel().limits(spec);
        let (bundle, name) = state.new_bundle().map_err(|error| failed("make a bundle", error))?;
        let first_id = ids.first;
        let mut container = Self {
            oci: Arc::clone(oci),
            way,
            bundle,
            name,
            around: Some(around),
            cgroup: Some(cgroup),
            limits,
            own_memory: 0,
            child: None,
            channel: None,
            stderr: None,
            agent: None,
            network: None,
            ids,
            shared_inodes: SharedInodes::default(),
        };
        // From here on, dropping it removes the container.
        container.launch(spec, first_id)?;
        container.wait_until_ready()?;
        container.bound_ipc()?;
        container.cover_inodes(spec)?;
        Ok(container)
    }

    fn launch(&mut self, spec: &ContainerSpec, first_id: u32) -> Result<(), BackendError> {
        let oci = Arc::clone(&self.oci);
        let root = oci.state.root_for(spec, &self.bundle);
        let root = root.map_err(|error| failed("make a root for the container", error))?;
        let agent = oci.state.agent();
        let cgroup = self.around.as_ref().and_then(|around| around.path_for_runtimes());
        let cgroup = cgroup.ok_or_else(|| failed("find the cgroup", "it has no path"))?;
        let cgroup = format!("{cgroup}/{OF_RUNTIME}");
        let is_empty = spec.network == NetworkPolicy::None && oci.runtime.kind.uses_host_network();
        let network = is_empty.then(empty_network).transpose();
        let network = network.map_err(|error| failed("make a network namespace", error))?;
        let shown = spec.shown_trees().map(|(host, inside)| (host.to_owned(), inside));
        let mut trees: Vec<(PathBuf, PathBuf)> = shown.collect();
        let mut places = Vec::new();
        if oci.runtime.kind.looks_as_container() {
            let made = places_for(&spec.trees, &self.bundle);
            places = made.map_err(|error| failed("make mount points for toolchains", error))?;
            for ((host, _), (_, place)) in trees.iter_mut().zip(&places) {
                host.clone_from(place);
            }
        }
        let config = BundleConfig {
            spec,
            trees: &trees,
            root: &root,
            agent: &agent,
            shown: &oci.state.root.shown,
            first_id,
            network: network.as_ref().map(|(_, path)| path.as_path()),
            cgroup: &cgroup,
            seccomp: &oci.seccomp,
            kind: oci.runtime.kind,
        };
        let config = config.write().to_string();
        fs::write(self.bundle.join("config.json"), config)
            .map_err(|error| failed("write the bundle", error))?;
        self.network = network.map(|(namespace, _)| namespace);
        let mut call = oci.runtime.call_in_a_way(&oci.state.runtime_root(&self.bundle), self.way);
        if oci.runtime.kind.starts_inside() {
            let entry = self.cgroup().entry();
            let entry = entry.map_err(|error| failed("enter a cgroup", error))?;
            entry.admit_at_start(&mut call).map_err(|error| failed("enter a cgroup", error))?;
        }
        if !places.is_empty() {
            private_mounts::give(&mut call, &places)
                .map_err(|error| failed("show toolchains to the runtime", error))?;
        }
        call.arg("run").arg("--bundle").arg(&self.bundle);
        call.arg("--pid-file").arg(self.agent_file()).arg(&self.name);
        call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            call.spawn().map_err(|error| failed("start the container runtime", error))?;
        let streams = child.stdin.take().zip(child.stdout.take());
        self.stderr = child.stderr.take();
        self.child = Some(child);
        let (input, output) =
            streams.ok_or_else(|| failed("talk to the agent", "it has no streams"))?;
        let channel = Channel::new(OwnedFd::from(input), OwnedFd::from(output));
        self.channel = Some(channel.map_err(|error| failed("talk to the agent", error))?);
        Ok(())
    }

    /// Waits until the agent is ready for a request.
    fn wait_until_ready(&mut self) -> Result<(), BackendError> {
        let mut channel =
            self.channel.take().ok_or_else(|| failed("talk to the agent", "somebody does"))?;
        match channel.wait(START_TIMEOUT) {
            Ok(Received::Message(message))
                if AgentEvent::decode(&message) == Ok(AgentEvent::Ready) => {}
            Ok(Received::End) => return Err(failed("start the container", self.error_output())),
            Ok(_) => {
                return Err(failed("start the container", "unexpected message from the agent"));
            }
            Err(error) => return Err(failed("wait for the container", error)),
        }
        self.network = None;
        self.admit().map_err(|error| failed("put the container into its cgroup", error))?;
        self.channel = Some(channel);
        Ok(())
    }

    /// The runtime would set them through a `/proc` that has no system files here.
    fn bound_ipc(&self) -> Result<(), BackendError> {
        let agent = self.agent.filter(|_| self.oci.runtime.kind.kernel() == Kernel::Host);
        let bounded = agent.map(ipc_limits::set_for).transpose();
        bounded.map(drop).map_err(|error| failed("bound System V IPC in the container", error))
    }

    /// Gives the container inodes of its own for what it shows.
    fn cover_inodes(&mut self, spec: &ContainerSpec) -> Result<(), BackendError> {
        let Some(agent) = self.agent.filter(|_| self.oci.has_own_inodes) else { return Ok(()) };
        let state = &self.oci.state;
        let cover = InodeCover {
            shown: &state.root.shown,
            empty: &state.empty(),
            agent: &[AGENT_INSIDE],
            own: &[],
        };
        self.shared_inodes = cover.apply(agent, spec)?;
        Ok(())
    }

    /// Whether its agent still waits.
    pub(super) fn is_waiting(&mut self) -> bool {
        self.channel.as_mut().is_some_and(Channel::is_quiet) && is_populated(self)
    }

    /// Applies the limits to a container in which only trusted code has run.
    fn admit(&mut self) -> io::Result<()> {
        if self.oci.runtime.kind.starts_inside() {
            let usage = self.cgroup().usage().map_err(io::Error::other)?;
            self.own_memory = usage.memory_current;
            self.limits = self.limits.with_more_memory(self.own_memory);
            return self.cgroup().set_limits(&self.limits).map_err(io::Error::other);
        }
        // The agent is the only process in it. While it starts a container, the runtime has threads
        // and memory in it, and it removes a cgroup before its counters could be read.
        self.cgroup().set_limits(&self.limits).map_err(io::Error::other)?;
        let agent = self.wait_for_agent()?;
        self.agent = Some(agent);
        let entry = self.cgroup().entry().map_err(io::Error::other)?;
        entry.admit(agent).map_err(io::Error::from)
    }

    /// The agent's process. The runtime writes its PID at about the time of the agent's first
    /// message.
    fn wait_for_agent(&self) -> io::Result<u32> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let written = match fs::read_to_string(self.agent_file()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                read => read?,
            };
            // The file is created empty and filled afterwards.
            if !written.is_empty() || Instant::now() >= deadline {
                return written.trim().parse().map_err(io::Error::other);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn agent_file(&self) -> PathBuf {
        self.bundle.join("agent.pid")
    }

    /// The runtime's error message.
    fn error_output(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(stderr) = &mut self.stderr {
            let _ = stderr.take(4096).read_to_end(&mut text);
        }
        match String::from_utf8_lossy(&text).trim() {
            "" => "it ended without a word".to_owned(),
            words => words.to_owned(),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.kill();
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let deadline = Instant::now() + REMOVAL_TIMEOUT;
        while child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                // It hangs. Its container is killed by name.
                child.kill()?;
                return child.wait().map(drop);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

/// A network namespace in which no interface is up, and its path while it is open.
fn empty_network() -> io::Result<(OwnedFd, PathBuf)> {
    let namespace = sandbox_linux::empty_network::make()?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
    Ok((namespace, path.into()))
}

impl Container for OciContainer {
    fn cgroup(&self) -> &dyn Cgroup {
        self.cgroup.as_deref().expect("it is there until the container is dropped")
    }

    fn take_channel(&mut self) -> Result<Channel, BackendError> {
        self.channel.take().ok_or_else(|| failed("talk to the agent", "somebody does"))
    }

    fn agent(&self) -> Option<u32> {
        self.agent
    }

    fn program_id(&self) -> u32 {
        outside(self.ids.first)
    }

    fn program_id_inside(&self) -> u32 {
        USER
    }

    fn shared_inodes(&self) -> &SharedInodes {
        &self.shared_inodes
    }

    fn own_processes(&self) -> Option<u64> {
        self.oci.runtime.kind.kernel().own_processes()
    }

    fn own_memory(&self) -> u64 {
        self.own_memory
    }
}

impl Drop for OciContainer {
    /// Removes everything, whatever state it is in.
    fn drop(&mut self) {
        drop(self.channel.take());
        let has_ended = self.end().is_ok();
        // A runtime that was killed with its container has nothing left to kill, and takes long to
        // notice.
        if !(has_ended && self.oci.runtime.kind.starts_inside()) {
            self.oci.runtime.delete(&self.oci.state.runtime_root(&self.bundle), &self.name);
        }
        let _ = fs::remove_dir_all(&self.bundle);
        let name = self.around.as_ref().and_then(|around| around.path_for_runtimes());
        for cgroup in [self.cgroup.take(), self.around.take()].into_iter().flatten() {
            let _ = cgroup.dissolve();
        }
        if let Some(name) = name {
            remove_everywhere(name.trim_start_matches('/'));
        }
    }
}
