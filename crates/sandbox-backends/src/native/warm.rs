//! Warm sandboxes: prepared with a runtime that waits for its program, or with the artefacts of a
//! compiled program.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sandbox_core::{
    Artefacts, Limits, NetworkPolicy, ProcessSpec, SandboxSpec, Stage, StagePlan, Start, Tree,
    WarmPlan, with_causes,
};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{Received, StepError};
use sandbox_protocol::launcher::SlotKind;
use sandbox_protocol::notice::Notice;

use super::early_exit::WaitingRuntime;
use super::exec_request;
use super::host::Host;
use super::slots::{ReadySlot, SlotFactory};
use super::teardown::{is_closed, tear_down};
use super::zygote::ZygoteCache;

/// A runtime writes this when it is ready for a program.
const READY: &[u8] = b"ready\n";
/// Starting a virtual machine on a busy host takes seconds.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Everything that a warm sandbox was prepared with. A plan that differs in any of it needs
/// another.
#[derive(Debug)]
pub(crate) struct WarmSpec {
    pub(crate) content: Content,
    limits: Limits,
}

/// What a warm sandbox contains.
#[derive(Debug)]
pub(crate) enum Content {
    /// A started runtime.
    Runtime(RuntimeSpec),
    /// The artefacts of a compiled program, which only has to be started.
    Artefacts(Arc<Artefacts>),
}

#[derive(Debug)]
pub(crate) struct RuntimeSpec {
    pub(crate) warm: Arc<WarmPlan>,
    trees: Vec<Tree>,
    network: NetworkPolicy,
    stage: Stage,
    zygote: ZygoteCache,
}

impl WarmSpec {
    /// The specification for this plan.
    pub(crate) fn of(plan: &StagePlan, wanted: &WarmRequest<'_>) -> Self {
        let content = match wanted {
            WarmRequest::Runtime(warm) => Content::Runtime(RuntimeSpec {
                warm: Arc::clone(warm),
                trees: plan.sandbox.trees.clone(),
                network: plan.sandbox.network,
                stage: plan.stage,
                zygote: ZygoteCache::default(),
            }),
            WarmRequest::Artefacts(artefacts) => Content::Artefacts(Arc::clone(artefacts)),
        };
        Self { content, limits: plan.sandbox.limits.clone() }
    }

    /// The specification of a compiled program with this key.
    #[cfg(test)]
    pub(crate) fn of_program(key: &str) -> Self {
        let artefacts = Artefacts { key: Some(key.to_owned()), files: Vec::new() };
        Self { content: Content::Artefacts(Arc::new(artefacts)), limits: Limits::run() }
    }

    /// Whether a sandbox with this specification can run this plan.
    pub(crate) fn fits(&self, plan: &StagePlan, wanted: &WarmRequest<'_>) -> bool {
        self.limits == plan.sandbox.limits
            && match (&self.content, wanted) {
                (Content::Runtime(runtime), WarmRequest::Runtime(warm)) => runtime.fits(plan, warm),
                (Content::Artefacts(prepared), WarmRequest::Artefacts(wanted)) => {
                    prepared.key == wanted.key
                }
                _ => false,
            }
    }

    /// How the report names a start in such a sandbox.
    pub(crate) fn start(&self) -> Start {
        match self.content {
            Content::Runtime(_) => Start::Warm,
            Content::Artefacts(_) => Start::Prepared,
        }
    }

    /// The runtime, if there is one.
    pub(crate) fn runtime(&self) -> Option<&RuntimeSpec> {
        match &self.content {
            Content::Runtime(runtime) => Some(runtime),
            Content::Artefacts(_) => None,
        }
    }

    /// Whether a zygote is running that can be forked.
    pub(crate) fn is_forked(&self) -> bool {
        self.runtime().is_some_and(|runtime| runtime.zygote.is_running())
    }
}

impl RuntimeSpec {
    fn fits(&self, plan: &StagePlan, warm: &Arc<WarmPlan>) -> bool {
        (Arc::ptr_eq(&self.warm, warm) || self.warm == *warm)
            && self.network == plan.sandbox.network
            && self.stage == plan.stage
            && self.trees == plan.sandbox.trees
    }

    /// Why it cannot be forked, if its recipe supports forking.
    pub(crate) fn fork_failure(&self) -> Option<String> {
        self.zygote.failure()
    }

    /// The stage that starts the runtime.
    fn plan(&self, limits: &Limits) -> StagePlan {
        let sandbox = SandboxSpec {
            files: self.warm.files.clone(),
            network: self.network,
            trees: self.trees.clone(),
            ..SandboxSpec::new(limits.clone())
        };
        let process = ProcessSpec::new(self.warm.command.clone(), self.warm.env.clone());
        StagePlan::new(self.stage, sandbox, process)
    }
}

/// What to prepare for a plan.
pub(crate) enum WarmRequest<'a> {
    Runtime(&'a Arc<WarmPlan>),
    Artefacts(&'a Arc<Artefacts>),
}

/// What can be prepared for a plan; `None` if the plan needs mounts or a proxy, which must be set
/// up before the program.
pub(crate) fn wanted(plan: &StagePlan) -> Option<WarmRequest<'_>> {
    let mounts_more = !plan.sandbox.volumes.is_empty() || plan.sandbox.workspace.is_some();
    if mounts_more || plan.sandbox.egress_proxy.is_some() {
        return None;
    }
    let is_known = plan.sandbox.artefacts.key.is_some() && plan.sandbox.trees.is_empty();
    let artefacts = || is_known.then_some(WarmRequest::Artefacts(&plan.sandbox.artefacts));
    plan.sandbox.warm.as_ref().map(WarmRequest::Runtime).or_else(artefacts)
}

/// How a runtime gets into its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMethod {
    /// It is started there, independently of all others.
    Fresh,
    /// It is forked from a zygote if possible, for when programs arrive faster than runtimes start.
    Fork,
}

/// Prepares a warm sandbox. The error is a message for people.
pub(crate) fn start(
    host: &Host,
    slot_factory: &SlotFactory,
    spec: &WarmSpec,
    method: StartMethod,
) -> Result<ReadySlot, String> {
    match &spec.content {
        Content::Runtime(runtime) => {
            start_runtime(host, slot_factory, runtime, &spec.limits, method)
        }
        Content::Artefacts(artefacts) => load(slot_factory, artefacts, &spec.limits),
    }
}

fn load(
    slot_factory: &SlotFactory,
    artefacts: &Artefacts,
    limits: &Limits,
) -> Result<ReadySlot, String> {
    let prepared = slot_factory.prepare_ahead(SlotKind::Any, limits);
    let mut ready = prepared.map_err(|error| with_causes(&error))?;
    let loaded = exec_request::load(&ready, artefacts).map_err(|error| with_causes(&error));
    ready.is_loaded = true;
    let settled = loaded.and_then(|()| settle(&mut ready));
    or_take_down(ready, settled)
}

fn start_runtime(
    host: &Host,
    slot_factory: &SlotFactory,
    runtime: &RuntimeSpec,
    limits: &Limits,
    method: StartMethod,
) -> Result<ReadySlot, String> {
    let zygote = &runtime.zygote;
    let can_be_forked = runtime.warm.forks && runtime.trees.is_empty() && zygote.is_available(host);
    if method == StartMethod::Fork && can_be_forked {
        match zygote.fork(host, slot_factory, limits, &runtime.plan(limits)) {
            Ok(mut ready) => {
                let waits = wait_until_ready(host, &mut ready)
                    .and_then(|()| settle(&mut ready))
                    .map(|()| ready.runtime = WaitingRuntime::find(&ready));
                return or_take_down(ready, waits);
            }
            // Start it separately instead.
            Err(reason) => zygote.give_up(reason),
        }
    }
    let prepared = slot_factory.prepare_ahead(SlotKind::Waiting, limits);
    let mut ready = prepared.map_err(|error| with_causes(&error))?;
    let plan = runtime.plan(limits);
    let waits = exec_request::start_waiting(host, slot_factory, &ready, &plan)
        .map_err(|error| with_causes(&error))
        .and_then(|()| wait_until_ready(host, &mut ready))
        .and_then(|()| settle(&mut ready))
        .map(|()| ready.runtime = WaitingRuntime::find(&ready));
    or_take_down(ready, waits)
}

fn or_take_down(ready: ReadySlot, waits: Result<(), String>) -> Result<ReadySlot, String> {
    match waits {
        Ok(()) => Ok(ready),
        Err(reason) => {
            tear_down(ready.slot);
            Err(reason)
        }
    }
}

/// Excludes the preparation from the program's usage.
fn settle(ready: &mut ReadySlot) -> Result<(), String> {
    let settled = ready.slot.cgroup.reset_peak().and_then(|()| ready.slot.cgroup.usage());
    ready.before = settled.map_err(|error| with_causes(&error))?;
    Ok(())
}

fn wait_until_ready(host: &Host, ready: &mut ReadySlot) -> Result<(), String> {
    let deadline = Instant::now() + START_TIMEOUT;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let slot = &ready.slot;
    let handles = ready.handles.as_mut().ok_or("its pipes were taken already")?;
    while output != READY {
        let (stdout, stderr) = handles.pipes.readers();
        wait(
            &[
                Some(stdout),
                Some(stderr),
                Some(slot.socket.as_fd()),
                handles.denied_calls.as_ref().map(AsFd::as_fd),
            ],
            deadline,
        )?;
        read_into(&mut output, stdout);
        read_into(&mut errors, stderr);
        if !errors.is_empty() || !READY.starts_with(&output) {
            output.append(&mut errors);
            return Err(format!("it said: {}", String::from_utf8_lossy(&output)));
        }
        refuse_denied_calls(host, handles.denied_calls.as_ref());
        match slot.try_receive().map_err(|error| with_causes(&error))? {
            Received::Notice(Notice::Confined, descriptors) => {
                let listener = descriptors.into_iter().next();
                handles.denied_calls = listener.and_then(|fd| Notifications::new(fd).ok());
            }
            Received::Nothing => {}
            Received::Notice(Notice::Failed(failure), _) => {
                return Err(with_causes(&StepError::from(failure)));
            }
            Received::Notice(..) | Received::Closed => return Err("it ended".to_owned()),
        }
        // A silent exit is visible only at its filter.
        if handles.denied_calls.as_ref().is_some_and(Notifications::is_over) {
            return Err("it ended".to_owned());
        }
    }
    Ok(())
}

/// Whether the runtime still waits. Calls that its own threads were denied are not counted.
pub(crate) fn is_healthy(host: &Host, ready: &ReadySlot) -> bool {
    let Some(handles) = &ready.handles else { return false };
    refuse_denied_calls(host, handles.denied_calls.as_ref());
    !is_closed(&ready.slot.socket, Duration::ZERO)
        && !handles.denied_calls.as_ref().is_some_and(Notifications::is_over)
}

fn refuse_denied_calls(host: &Host, denied_calls: Option<&Notifications>) {
    let Some(denied_calls) = denied_calls else { return };
    while let Ok(Some(call)) = denied_calls.receive() {
        let (_, errno) = host.refusal(&call);
        let _ = denied_calls.refuse(call.id, errno);
    }
}

fn wait(watched: &[Option<BorrowedFd<'_>>], deadline: Instant) -> Result<(), String> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut watched: Vec<_> =
        watched.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout =
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut watched, Some(&timeout)) {
        Ok(0) => Err(format!("it was not ready after {} seconds", START_TIMEOUT.as_secs())),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn read_into(text: &mut Vec<u8>, stream: BorrowedFd<'_>) {
    let mut buffer = [0; 4096];
    // An empty pipe adds nothing.
    let count = rustix::io::read(stream, &mut buffer[..]).unwrap_or(0);
    text.extend_from_slice(&buffer[..count]);
}
