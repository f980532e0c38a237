//! What can be in a sandbox before its program comes: a runtime that has started and waits, or the artefacts
//! of a program that was compiled before.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sandbox_core::{
    Artefacts, CollectRule, Limits, NetworkPolicy, Stage, StagePlan, Start, Stdin, Tree, WarmPlan,
    with_causes,
};
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{Received, StepError};
use sandbox_protocol::launcher::SlotKind;
use sandbox_protocol::notice::Notice;

use super::host::Host;
use super::leave::Runtime;
use super::order;
use super::originals::Originals;
use super::retire::{is_closed, take_down};
use super::slots::{Maker, ReadySlot};

/// What a runtime writes when it waits.
const READY: &[u8] = b"ready\n";
/// A virtual machine on a busy host needs seconds.
const LONGEST: Duration = Duration::from_mins(1);

/// Everything that a waiting sandbox was made with. A plan that differs in any of it needs another.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) content: Content,
    limits: Limits,
}

/// What is in it before there is a program.
#[derive(Debug)]
pub(crate) enum Content {
    /// A runtime that has started.
    Runtime(RuntimeShape),
    /// The artefacts of a compiled program: it only has to be started.
    Artefacts(Arc<Artefacts>),
}

#[derive(Debug)]
pub(crate) struct RuntimeShape {
    pub(crate) warm: Arc<WarmPlan>,
    trees: Vec<Tree>,
    network: NetworkPolicy,
    stage: Stage,
    originals: Originals,
}

impl Shape {
    /// What could carry out this plan.
    pub(crate) fn of(plan: &StagePlan, wanted: &Wanted<'_>) -> Self {
        let content = match wanted {
            Wanted::Runtime(warm) => Content::Runtime(RuntimeShape {
                warm: Arc::clone(warm),
                trees: plan.trees.clone(),
                network: plan.network,
                stage: plan.stage,
                originals: Originals::default(),
            }),
            Wanted::Artefacts(artefacts) => Content::Artefacts(Arc::clone(artefacts)),
        };
        Self { content, limits: plan.limits.clone() }
    }

    /// That of a compiled program with this word for its artefacts.
    #[cfg(test)]
    pub(crate) fn of_program(key: &str) -> Self {
        let artefacts = Artefacts { key: Some(key.to_owned()), files: Vec::new() };
        Self { content: Content::Artefacts(Arc::new(artefacts)), limits: Limits::run() }
    }

    /// Whether a sandbox that was made so can carry out this plan.
    pub(crate) fn fits(&self, plan: &StagePlan, wanted: &Wanted<'_>) -> bool {
        self.limits == plan.limits
            && match (&self.content, wanted) {
                (Content::Runtime(runtime), Wanted::Runtime(warm)) => runtime.fits(plan, warm),
                (Content::Artefacts(ours), Wanted::Artefacts(theirs)) => ours.key == theirs.key,
                _ => false,
            }
    }

    /// What its start is called for those who read of it.
    pub(crate) fn start(&self) -> Start {
        match self.content {
            Content::Runtime(_) => Start::Warm,
            Content::Artefacts(_) => Start::Prepared,
        }
    }

    /// The runtime, if one waits in it.
    pub(crate) fn runtime(&self) -> Option<&RuntimeShape> {
        match &self.content {
            Content::Runtime(runtime) => Some(runtime),
            Content::Artefacts(_) => None,
        }
    }

    /// Whether there is an original that can be copied now.
    pub(crate) fn is_copied(&self) -> bool {
        self.runtime().is_some_and(|runtime| runtime.originals.is_there())
    }
}

impl RuntimeShape {
    fn fits(&self, plan: &StagePlan, warm: &Arc<WarmPlan>) -> bool {
        (Arc::ptr_eq(&self.warm, warm) || self.warm == *warm)
            && self.network == plan.network
            && self.stage == plan.stage
            && self.trees == plan.trees
    }

    /// Why it is not copied, if it could be.
    pub(crate) fn why_not_copied(&self) -> Option<String> {
        self.originals.failure()
    }

    /// The stage that starts the runtime.
    fn plan(&self, limits: &Limits) -> StagePlan {
        StagePlan {
            stage: self.stage,
            command: self.warm.command.clone(),
            env: self.warm.env.clone(),
            files: self.warm.files.clone(),
            artefacts: Arc::default(),
            directory: String::new(),
            stdin: Stdin::Empty,
            limits: limits.clone(),
            network: self.network,
            allow: None,
            gate: None,
            volumes: Vec::new(),
            trees: self.trees.clone(),
            workspace: None,
            warm: None,
            collect: CollectRule::nothing(),
            allow_missing: std::collections::BTreeSet::new(),
            usage_interval: None,
        }
    }
}

/// What is worth having in a sandbox before a plan comes.
pub(crate) enum Wanted<'a> {
    Runtime(&'a Arc<WarmPlan>),
    Artefacts(&'a Arc<Artefacts>),
}

/// What could be there before the plan comes; none if the plan asks for what cannot be changed around it.
pub(crate) fn wanted(plan: &StagePlan) -> Option<Wanted<'_>> {
    let mounts_more = !plan.volumes.is_empty() || plan.workspace.is_some();
    if mounts_more || plan.gate.is_some() {
        return None;
    }
    let is_known = plan.artefacts.key.is_some() && plan.trees.is_empty();
    let artefacts = || is_known.then_some(Wanted::Artefacts(&plan.artefacts));
    plan.warm.as_ref().map(Wanted::Runtime).or_else(artefacts)
}

/// How a runtime gets into its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is started there, and has nothing in common with any other.
    Own,
    /// As a copy, where that can be: for when programs come faster than runtimes start.
    Quickest,
}

/// Makes a sandbox with everything in it that can be there before a program. The reason why it could not is
/// for people to read.
pub(crate) fn start(
    host: &Host,
    maker: &Maker,
    shape: &Shape,
    way: Way,
) -> Result<ReadySlot, String> {
    match &shape.content {
        Content::Runtime(runtime) => start_runtime(host, maker, runtime, &shape.limits, way),
        Content::Artefacts(artefacts) => load(maker, artefacts, &shape.limits),
    }
}

fn load(maker: &Maker, artefacts: &Artefacts, limits: &Limits) -> Result<ReadySlot, String> {
    let prepared = maker.prepare_ahead(SlotKind::Any, limits);
    let mut ready = prepared.map_err(|error| with_causes(&error))?;
    let loaded = order::load(&ready, artefacts).map_err(|error| with_causes(&error));
    ready.is_loaded = true;
    let settled = loaded.and_then(|()| settle(&mut ready));
    or_take_down(ready, settled)
}

fn start_runtime(
    host: &Host,
    maker: &Maker,
    runtime: &RuntimeShape,
    limits: &Limits,
    way: Way,
) -> Result<ReadySlot, String> {
    let originals = &runtime.originals;
    let can_be_copied =
        runtime.warm.forks && runtime.trees.is_empty() && originals.are_possible(host);
    if way == Way::Quickest && can_be_copied {
        match originals.copy(host, maker, limits, &runtime.plan(limits)) {
            Ok(mut ready) => {
                let waits = wait_until_ready(host, &mut ready)
                    .and_then(|()| settle(&mut ready))
                    .map(|()| ready.runtime = Runtime::find(&ready));
                return or_take_down(ready, waits);
            }
            // It is started by itself instead.
            Err(reason) => originals.give_up(reason),
        }
    }
    let prepared = maker.prepare_ahead(SlotKind::Waiting, limits);
    let mut ready = prepared.map_err(|error| with_causes(&error))?;
    let plan = runtime.plan(limits);
    let waits = order::start_waiting(host, maker, &ready, &plan)
        .map_err(|error| with_causes(&error))
        .and_then(|()| wait_until_ready(host, &mut ready))
        .and_then(|()| settle(&mut ready))
        .map(|()| ready.runtime = Runtime::find(&ready));
    or_take_down(ready, waits)
}

fn or_take_down(ready: ReadySlot, waits: Result<(), String>) -> Result<ReadySlot, String> {
    match waits {
        Ok(()) => Ok(ready),
        Err(reason) => {
            take_down(ready.slot);
            Err(reason)
        }
    }
}

/// What starting took is not the program's.
fn settle(ready: &mut ReadySlot) -> Result<(), String> {
    let settled = ready.slot.cgroup.reset_peak().and_then(|()| ready.slot.cgroup.usage());
    ready.before = settled.map_err(|error| with_causes(&error))?;
    Ok(())
}

fn wait_until_ready(host: &Host, ready: &mut ReadySlot) -> Result<(), String> {
    let deadline = Instant::now() + LONGEST;
    let (mut said, mut complaints) = (Vec::new(), Vec::new());
    let slot = &ready.slot;
    let tools = ready.tools.as_mut().ok_or("its tools are gone")?;
    while said != READY {
        let (stdout, stderr) = tools.pipes.readers();
        wait(
            &[
                Some(stdout),
                Some(stderr),
                Some(slot.socket.as_fd()),
                tools.denied_calls.as_ref().map(AsFd::as_fd),
            ],
            deadline,
        )?;
        read_into(&mut said, stdout);
        read_into(&mut complaints, stderr);
        if !complaints.is_empty() || !READY.starts_with(&said) {
            said.append(&mut complaints);
            return Err(format!("it said: {}", String::from_utf8_lossy(&said)));
        }
        refuse_denied_calls(host, tools.denied_calls.as_ref());
        match slot.try_receive().map_err(|error| with_causes(&error))? {
            Received::Notice(Notice::Confined, descriptors) => {
                let listener = descriptors.into_iter().next();
                tools.denied_calls = listener.and_then(|fd| Notifications::new(fd).ok());
            }
            Received::Nothing => {}
            Received::Notice(Notice::Failed(failure), _) => {
                return Err(with_causes(&StepError::from(failure)));
            }
            Received::Notice(..) | Received::Closed => return Err("it ended".to_owned()),
        }
        // An end without a word is seen by nobody but its filter.
        if tools.denied_calls.as_ref().is_some_and(Notifications::is_over) {
            return Err("it ended".to_owned());
        }
    }
    Ok(())
}

/// Whether it still waits. What its own threads were denied in the meantime is nobody's fault.
pub(crate) fn is_healthy(host: &Host, ready: &ReadySlot) -> bool {
    let Some(tools) = &ready.tools else { return false };
    refuse_denied_calls(host, tools.denied_calls.as_ref());
    !is_closed(&ready.slot.socket, Duration::ZERO)
        && !tools.denied_calls.as_ref().is_some_and(Notifications::is_over)
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
        Ok(0) => Err(format!("it was not ready after {} seconds", LONGEST.as_secs())),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn read_into(text: &mut Vec<u8>, stream: BorrowedFd<'_>) {
    let mut buffer = [0; 4096];
    // Nothing there is nothing to add.
    let count = rustix::io::read(stream, &mut buffer[..]).unwrap_or(0);
    text.extend_from_slice(&buffer[..count]);
}
