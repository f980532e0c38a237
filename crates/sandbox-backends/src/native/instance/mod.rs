//! Instances: sandboxes that run any number of processes, one after another and at once.
//!
//! An instance is a slot whose init starts processes on request. `NativeInstance` owns the slot,
//! `process` starts a process, `watch` supervises it and `output` reads what it writes.

mod output;
mod process;
mod watch;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::io::Errno;
use sandbox_core::{
    BackendError, CancelToken, DirectoryEntry, Instance, InstanceUsage, Process, ProcessLimits,
    ProcessSpec, RelativePath, SandboxSpec, Stage, StagePlan,
};
use sandbox_linux::cgroup::CgroupLimits;
use sandbox_linux::{LaunchError, work_files};
use sandbox_protocol::exec::{ExecFile, ExecRequest};
use sandbox_protocol::notice::Notice;

use super::egress::{NetworkSockets, OpenNetwork};
use super::egress_proxy::RunningProxy;
use super::exec_request;
use super::host::{Host, OWN_PROCESSES};
use super::pool::{Lease, Pool};
use super::supervise::{limit_locks, network_memory};
use super::teardown::is_closed;
use crate::error::failed;
use crate::supervise::{
    Cause, InstanceInit, InstanceLimits, KILL_TIMEOUT, KillReason, refuse_unenforced,
};
use process::NativeProcess;

/// A process of its own writes files, one at a time, whatever the programs have used up.
const FILE_WRITERS: u64 = 1;

/// A sandbox that lives until it is killed or dropped.
pub(crate) struct NativeInstance<'a> {
    host: &'a Host,
    /// What it was created with. The process of this plan is empty and never started.
    plan: StagePlan,
    init: Arc<InstanceInit>,
    state: Mutex<State<'a>>,
}

/// What changes during its life.
struct State<'a> {
    /// `None` after it was killed. It is torn down when no operation uses it any more.
    sandbox: Option<Arc<Sandbox<'a>>>,
    /// Number of processes that run.
    running: u64,
    /// Number of processes that were ever started.
    started: u64,
}

/// The sandbox, as long as there is one.
struct Sandbox<'a> {
    /// First, because it watches the cgroup.
    _limits: InstanceLimits,
    slot: Lease<'a>,
    /// Its work directory.
    work: OwnedFd,
    /// Dropping them closes their connections.
    _network: Option<OpenNetwork>,
    _egress_proxy: Option<RunningProxy>,
}

impl<'a> NativeInstance<'a> {
    /// Claims a slot and makes it an instance.
    pub(crate) fn create(
        host: &'a Host,
        pool: &'a Pool,
        spec: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Self, BackendError> {
        let none = ProcessSpec::new(Vec::new(), BTreeMap::new());
        let plan = StagePlan::new(Stage::Run, spec, none);
        host.check(&plan)?;
        refuse_unenforced(&plan.sandbox)?;
        let Some(slot) = pool.claim_any(&plan.sandbox, cancel)? else {
            return Err(BackendError::Refused("cancelled before there was a sandbox".to_owned()));
        };
        exec_request::send_instance(host, pool.slot_factory(), &slot, &plan)?;
        let init = slot.slot.init.try_clone();
        let init = InstanceInit::new(init.map_err(|error| failed("start the sandbox", error))?);
        let sandbox = Sandbox::set_up(host, slot, &plan, &init)?;
        let state = State { sandbox: Some(Arc::new(sandbox)), running: 0, started: 0 };
        Ok(Self { host, plan, init, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox, if it was not killed.
    fn sandbox(&self) -> Result<Arc<Sandbox<'a>>, BackendError> {
        self.state().sandbox.clone().ok_or_else(killed)
    }

    /// Kills every process of the instance; the first cause counts.
    fn end(&self, cause: Cause) {
        self.init.kill(KillReason::Cause(cause));
    }

    /// Counts a process that starts, and returns its number if no other runs.
    fn add_process(&self, sandbox: &Sandbox<'_>) -> Result<Option<u64>, BackendError> {
        let mut state = self.state();
        self.allow_shims(sandbox, state.running + 1)?;
        state.running += 1;
        state.started += 1;
        Ok((state.running == 1).then_some(state.started))
    }

    /// Counts a process that has ended.
    fn remove_process(&self) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        if let Some(sandbox) = &state.sandbox {
            // A limit that is too high by one is no harm.
            let _ = self.allow_shims(sandbox, state.running);
        }
    }

    /// Whether the process of this number is the only one that has run since its start.
    fn is_last(&self, number: u64) -> bool {
        self.state().started == number
    }

    /// Sets the limit on processes when there are this many shims, which do not count as the
    /// programs'.
    fn allow_shims(&self, sandbox: &Sandbox<'_>, shims: u64) -> Result<(), BackendError> {
        let Some(pids) = self.host.cgroup_limits(&self.plan.sandbox.limits).pids else {
            return Ok(());
        };
        let limits =
            CgroupLimits { pids: Some(pids + shims + FILE_WRITERS), ..CgroupLimits::default() };
        let set = sandbox.slot.slot.cgroup.set_limits(&limits);
        set.map_err(|error| failed("set the limits of the sandbox", error))
    }
}

impl<'a> Sandbox<'a> {
    /// Waits until init starts processes, and connects the network.
    fn set_up(
        host: &Host,
        mut slot: Lease<'a>,
        plan: &StagePlan,
        init: &Arc<InstanceInit>,
    ) -> Result<Self, BackendError> {
        // The pipes of the slot are for a sandbox with one program.
        drop(slot.take_handles());
        let (mut work, mut network, mut egress_proxy) = (None, None, None);
        let mut sockets = NetworkSockets::default();
        loop {
            let received = slot.slot.receive();
            let (notice, descriptors) =
                received.map_err(|error| failed("start the sandbox", error))?;
            match notice {
                Notice::Serving => break,
                Notice::Workspace => work = descriptors.into_iter().next(),
                Notice::ProxyListener => {
                    let listener = descriptors.into_iter().next();
                    if let (Some(listener), Some(plan)) = (listener, &plan.sandbox.egress_proxy) {
                        let proxy = RunningProxy::open(listener, plan.clone());
                        let proxy = proxy.map_err(|error| failed("start the egress proxy", error));
                        egress_proxy = Some(proxy?);
                    }
                }
                Notice::Network => {
                    if let (Some(all), Some(allow)) =
                        (sockets.take(descriptors), &plan.sandbox.allow)
                    {
                        let open = OpenNetwork::open(all, Arc::clone(allow));
                        network = Some(open.map_err(|error| failed("open the network", error))?);
                        let told = slot.slot.network_is_open();
                        told.map_err(|error| failed("open the network", error))?;
                    }
                }
                // Sent while the slot was prepared.
                _ => {}
            }
        }
        let work = match work {
            Some(work) => work,
            None => {
                slot.slot.work.try_clone().map_err(|error| failed("start the sandbox", error))?
            }
        };
        let locks = limit_locks(host, plan, &slot.slot.init);
        let locks = locks.map_err(|error| failed("count the file locks of the sandbox", error))?;
        let network_memory = network_memory(host, plan, &slot.slot, Instant::now());
        let limits = InstanceLimits::enforce(init, locks, network_memory)?;
        Ok(Self { _limits: limits, slot, work, _network: network, _egress_proxy: egress_proxy })
    }
}

impl Instance for NativeInstance<'_> {
    fn start(
        &self,
        spec: ProcessSpec,
        limits: ProcessLimits,
    ) -> Result<Box<dyn Process + '_>, BackendError> {
        Ok(Box::new(NativeProcess::start(self, &spec, limits)?))
    }

    fn put(
        &self,
        path: &RelativePath,
        contents: &[u8],
        executable: bool,
    ) -> Result<(), BackendError> {
        let file = ExecFile { path: path.as_str(), contents, executable };
        let request = ExecRequest { files: vec![file], ..ExecRequest::default() };
        let written = self.sandbox()?.slot.slot.write_files(&request);
        written.map_err(|error| match error {
            LaunchError::Step(error) => refused("write", Some(path), error.cause),
            error => failed("write a file", error),
        })
    }

    fn get(&self, path: &RelativePath, max_bytes: u64) -> Result<Vec<u8>, BackendError> {
        work_files::read(self.sandbox()?.work.as_fd(), path, max_bytes)
            .map_err(|error| refused("read", Some(path), error))
    }

    fn list(&self, path: Option<&RelativePath>) -> Result<Vec<DirectoryEntry>, BackendError> {
        work_files::list(self.sandbox()?.work.as_fd(), path)
            .map_err(|error| refused("list", path, error))
    }

    fn remove(&self, path: &RelativePath) -> Result<(), BackendError> {
        work_files::remove(self.sandbox()?.work.as_fd(), path)
            .map_err(|error| refused("remove", Some(path), error))
    }

    fn usage(&self) -> Result<InstanceUsage, BackendError> {
        let sandbox = self.sandbox()?;
        let usage = sandbox.slot.slot.cgroup.usage();
        let usage = usage.map_err(|error| failed("read what the sandbox used", error))?;
        let own = OWN_PROCESSES + self.state().running;
        Ok(InstanceUsage {
            cpu_time: usage.cpu_total.saturating_sub(sandbox.slot.before.cpu_total),
            memory_bytes: usage.memory_current,
            processes: usage.pids_current.saturating_sub(own),
        })
    }

    fn kill(&self) -> Result<(), BackendError> {
        self.end(Cause::Cancelled);
        let Some(sandbox) = self.state().sandbox.take() else { return Ok(()) };
        // Only the end of process 1 proves that every process is gone.
        if is_closed(&sandbox.slot.slot.socket, KILL_TIMEOUT) {
            Ok(())
        } else {
            Err(failed("end the sandbox", Errno::TIMEDOUT))
        }
    }
}

fn killed() -> BackendError {
    BackendError::Refused("the sandbox was killed".to_owned())
}

/// What programs made of the work directory prevents an operation, or the path is wrong.
fn refused(verb: &str, path: Option<&RelativePath>, error: Errno) -> BackendError {
    let path = path.map_or(".", RelativePath::as_str).escape_debug();
    let reason = match error {
        Errno::LOOP => "the path contains a symbolic link".to_owned(),
        Errno::XDEV => "the path leads to a volume".to_owned(),
        Errno::FBIG => "it is larger than the limit".to_owned(),
        Errno::INVAL => "it is not a regular file".to_owned(),
        error => error.to_string(),
    };
    BackendError::Refused(format!("cannot {verb} '{path}': {reason}"))
}
