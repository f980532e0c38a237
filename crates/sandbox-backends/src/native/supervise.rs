//! What the supervisor loop does with a native sandbox: notices of init, output, denied calls, and
//! the network that the supervisor serves.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_core::{
    BackendError, CancelToken, NetworkReport, Observer, ProcessLimits, Protection, StagePlan,
};
use sandbox_linux::seccomp::{Notification, Notifications};
use sandbox_linux::{Received, Slot, StepError, ask_to_end};
use sandbox_protocol::notice::Notice;

use super::denied_calls::DeniedCalls;
use super::early_exit;
use super::egress::{NetworkSockets, OpenNetwork};
use super::egress_proxy::RunningProxy;
use super::exec_request::Running;
use super::host::{Host, OWN_PROCESSES};
use crate::error::failed;
use crate::process::process_id;
use crate::supervise::{
    Cause, Counters, Ended, KILL_TIMEOUT, LockLimit, NetworkMemory, Supervised, Supervision, Terms,
    UNACCEPTED_BYTES, supervise,
};

/// Maximum output that is kept in memory if the output limit is off.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum time for a program to run if the time limit is off.
const MAX_WALL_TIME: Duration = Duration::from_hours(1);
/// The control files of the cgroup are closed after this time, until the program ends.
pub(super) const LONG_RUNNING_AFTER: Duration = Duration::from_secs(1);

/// A stage in a slot.
pub(crate) struct SlotProgram<'a> {
    host: &'a Host,
    plan: &'a StagePlan,
    pub(crate) running: Running<'a>,
    denied_calls: DeniedCalls,
    /// An exit that was announced before the notice arrived that the program starts.
    announced_exit: Option<Notification>,
    /// Dropping it closes its connections.
    egress_proxy: Option<RunningProxy>,
    /// Dropping it closes its connections.
    network: Option<OpenNetwork>,
    /// Sockets of the network, until all have arrived.
    ends: NetworkSockets,
    /// When to close descriptors that are not needed while the program runs.
    descriptor_release: Option<Instant>,
    /// The work directory, if it is a workspace.
    pub(crate) work: Option<OwnedFd>,
    pub(crate) network_report: Option<NetworkReport>,
    pub(crate) proxy_refusals: Vec<String>,
}

/// Supervises a stage until the program and everything it started have ended.
pub(crate) fn watch<'a>(
    host: &'a Host,
    mut running: Running<'a>,
    plan: &'a StagePlan,
    observer: &mut dyn Observer,
    cancel: &CancelToken,
) -> Result<(SlotProgram<'a>, Ended), BackendError> {
    let started = running.has_begun.then(Instant::now);
    let terms = Terms {
        limits: process_limits(host, plan),
        cpus: plan.sandbox.limits.cpus(),
        usage_interval: plan.usage_interval,
        started,
        oom: running.oom.take(),
    };
    let denied_calls = DeniedCalls::new(running.denied_calls.take());
    let mut program = SlotProgram {
        host,
        plan,
        running,
        denied_calls,
        announced_exit: None,
        egress_proxy: None,
        network: None,
        ends: NetworkSockets::default(),
        descriptor_release: None,
        work: None,
        network_report: None,
        proxy_refusals: Vec::new(),
    };
    program.schedule_release(started);
    let ended = host.wait(|| supervise(&mut program, terms, observer, cancel))?;
    Ok((program, ended))
}

fn process_limits(host: &Host, plan: &StagePlan) -> ProcessLimits {
    let limits = &plan.sandbox.limits;
    let has = |protection| host.has(protection);
    ProcessLimits {
        wall_time: Some(if has(Protection::WallTime) { limits.wall_time() } else { MAX_WALL_TIME }),
        cpu_time: limits.cpu_time().filter(|_| has(Protection::CpuTime)),
        output_bytes: if has(Protection::Output) {
            limits.output().as_usize()
        } else {
            MAX_OUTPUT_BYTES
        },
    }
}

/// Descriptors of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Output,
    Slot,
    DeniedCall,
    Network,
}

impl Supervised for SlotProgram<'_> {
    type Source = Source;

    const START: &'static str = "build the sandbox";

    fn sources(&self) -> impl Iterator<Item = (Source, BorrowedFd<'_>)> {
        let output = self.running.streams.watched().map(|stream| (Source::Output, stream));
        let slot = (Source::Slot, self.running.slot.slot.socket.as_fd());
        let denied = self.denied_calls.listener().map(|listener| (Source::DeniedCall, listener));
        let network = self.network.as_ref();
        let network = network.map(|network| (Source::Network, network.events_ready()));
        output.chain([slot]).chain(denied).chain(network)
    }

    fn handle(
        &mut self,
        source: Source,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        match source {
            Source::Output => {
                self.running.streams.read(supervision);
            }
            Source::Slot => self.recv_notice(supervision)?,
            Source::DeniedCall => {
                self.answer_denied_call(supervision);
            }
            Source::Network => {
                let network = self.network.as_ref();
                for event in network.map(OpenNetwork::take_events).unwrap_or_default() {
                    supervision.observer.network(event);
                }
            }
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let slot = &self.running.slot;
        [self.denied_calls.next_answer(), self.descriptor_release, slot.next_cpu_share_check()]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_time(&mut self, now: Instant, _: &mut Supervision<'_>) -> Result<(), BackendError> {
        self.denied_calls.resume(now);
        self.running.slot.check_cpu_share(now);
        if self.descriptor_release.is_some_and(|at| at <= now) {
            self.descriptor_release = None;
            self.running.slot.release_descriptors();
        }
        Ok(())
    }

    fn drain(&mut self, supervision: &mut Supervision<'_>) {
        if let Some(network) = self.network.take() {
            let (events, report) = network.close();
            for event in events {
                supervision.observer.network(event);
            }
            self.network_report = Some(report);
        }
        self.proxy_refusals = self.egress_proxy.take().map(RunningProxy::close).unwrap_or_default();
        self.running.streams.drain(supervision);
        while self.answer_denied_call(supervision) {}
    }

    fn terminate(&mut self) {
        let _ = pidfd_send_signal(self.init(), Signal::TERM);
    }

    fn kill_program(&mut self) {
        // Init may be gone already.
        let _ = ask_to_end(self.init().as_fd());
    }

    fn kill_sandbox(&mut self, _: Cause) {
        // In the background its end could take as long as others compute.
        self.running.slot.leave_background();
        // The whole namespace ends with init.
        let _ = pidfd_send_signal(self.init(), Signal::KILL);
    }

    fn is_gone(&self) -> bool {
        has_ended(self.init(), Duration::ZERO).unwrap_or(false)
    }

    fn counters(&self) -> Counters<'_> {
        let slot = &self.running.slot;
        Counters {
            cgroup: slot.slot.cgroup.as_ref(),
            before: &slot.before,
            own_processes: Some(OWN_PROCESSES),
            own_memory: 0,
            agent: None,
            init: Some(slot.slot.init.as_fd()),
        }
    }

    fn network_memory(&self, now: Instant) -> Option<NetworkMemory> {
        network_memory(self.host, self.plan, &self.running.slot.slot, now)
    }

    fn limit_locks(&self) -> io::Result<Option<LockLimit>> {
        limit_locks(self.host, self.plan, self.init())
    }
}

/// A monitor of the kernel memory that the network of a sandbox holds, if it is its own.
pub(super) fn network_memory(
    host: &Host,
    plan: &StagePlan,
    slot: &Slot,
    now: Instant,
) -> Option<NetworkMemory> {
    let limit = host.limits_network_memory(plan)?;
    let init = process_id(slot.init.as_fd());
    Some(NetworkMemory::new(now, slot.cgroup.as_ref(), init, UNACCEPTED_BYTES, limit))
}

/// Starts to count the file locks of a sandbox, if they are limited.
pub(super) fn limit_locks(
    host: &Host,
    plan: &StagePlan,
    init: &OwnedFd,
) -> io::Result<Option<LockLimit>> {
    if !host.has(Protection::Memory) {
        return Ok(None);
    }
    let memory = plan.sandbox.limits.memory().as_u64();
    let init_id = process_id(init.as_fd()).ok_or(Errno::SRCH.into());
    let started = init_id.and_then(|init| LockLimit::start(init, memory));
    match started {
        Ok(limit) => Ok(Some(limit)),
        // Its locks are released with it.
        Err(_) if has_ended(init, Duration::ZERO).unwrap_or(false) => Ok(None),
        Err(_) if plan.sandbox.allow_missing.contains(&Protection::Memory) => Ok(None),
        Err(error) => Err(error),
    }
}

impl SlotProgram<'_> {
    fn init(&self) -> &OwnedFd {
        &self.running.slot.slot.init
    }

    fn schedule_release(&mut self, started: Option<Instant>) {
        // Usage samples need all control files.
        let started = started.filter(|_| self.plan.usage_interval.is_none());
        self.descriptor_release = started.map(|started| started + LONG_RUNNING_AFTER);
    }

    /// Answers one denied call; false if there is none.
    fn answer_denied_call(&mut self, supervision: &mut Supervision<'_>) -> bool {
        let Some(call) = self.denied_calls.receive() else { return false };
        if call.is_early_exit() && supervision.started().is_none() {
            // Init passes the program to the runtime before it reports the start, and a short
            // program may be done in between.
            self.announced_exit = Some(call);
        } else {
            self.answer(&call, supervision);
        }
        true
    }

    fn answer(&mut self, call: &Notification, supervision: &mut Supervision<'_>) {
        if !(call.is_early_exit() && self.accept_early_exit(call, supervision)) {
            self.denied_calls.refuse(call, self.host, supervision);
        }
    }

    /// Ends the execution if the runtime announced its exit and may be killed later; false if it
    /// must exit by itself.
    fn accept_early_exit(
        &mut self,
        call: &Notification,
        supervision: &mut Supervision<'_>,
    ) -> bool {
        let Some(started) = supervision.started() else { return false };
        let exit = early_exit::exit_of(&self.running.slot, call.thread, started.elapsed());
        let Some(exit) = exit else { return false };
        let Some(listener) = self.denied_calls.take_listener() else { return false };
        self.running.slot.leave_waiting(listener);
        supervision.exit(exit);
        true
    }

    fn recv_notice(&mut self, supervision: &mut Supervision<'_>) -> Result<(), BackendError> {
        let received = self.running.slot.slot.try_receive();
        match received.map_err(|error| failed("receive from the sandbox", error))? {
            Received::Nothing => {}
            Received::Closed => {
                // Init was killed, by the kernel for lack of memory or from outside. Sockets close
                // before the rest of a namespace dies; only the end of process 1 proves that it is
                // gone.
                let _ = pidfd_send_signal(self.init(), Signal::KILL);
                match has_ended(self.init(), KILL_TIMEOUT) {
                    Ok(true) => supervision.set_over(),
                    Ok(false) => return Err(failed("end the sandbox", Errno::TIMEDOUT)),
                    Err(error) => return Err(failed("wait for the end of the sandbox", error)),
                }
            }
            Received::Notice(notice, descriptors) => {
                self.handle_notice(notice, descriptors, supervision)
                    .unwrap_or_else(|failure| supervision.abort(failure));
            }
        }
        Ok(())
    }

    /// Returns why the program cannot run, if it cannot.
    fn handle_notice(
        &mut self,
        notice: Notice,
        descriptors: Vec<OwnedFd>,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), StepError> {
        if notice == Notice::Network {
            return self.open_network(descriptors);
        }
        let descriptor = descriptors.into_iter().next();
        match notice {
            // Sent while the slot was prepared, or handled elsewhere.
            Notice::Cloned
            | Notice::Ready { .. }
            | Notice::Confined
            | Notice::FilesWritten
            | Notice::Network
            | Notice::Serving => {}
            Notice::ProxyListener | Notice::Workspace if descriptor.is_none() => {
                return Err(step("receive the descriptor that belongs to a notice", Errno::BADMSG));
            }
            Notice::ProxyListener => self.start_egress_proxy(descriptor)?,
            Notice::Workspace => self.work = descriptor,
            Notice::Starting => {
                if let Some(listener) = descriptor {
                    self.denied_calls.listen(Notifications::new(listener).ok());
                }
                supervision.start();
                self.schedule_release(supervision.started());
                if let Some(call) = self.announced_exit.take() {
                    self.answer(&call, supervision);
                }
                if let Some(feed) = self.running.feed.take()
                    && feed.begin().is_err()
                {
                    return Err(step("give the program its standard input", Errno::AGAIN));
                }
            }
            Notice::Failed(failure) => supervision.fail(StepError::from(failure)),
            // Init reports only after it has reaped every other process.
            Notice::Exited(exit) => supervision.exit(exit),
            Notice::Gone => supervision.set_over(),
        }
        Ok(())
    }

    fn start_egress_proxy(&mut self, listener: Option<OwnedFd>) -> Result<(), StepError> {
        if let (Some(listener), Some(egress_proxy)) = (listener, &self.plan.sandbox.egress_proxy) {
            let proxy = RunningProxy::open(listener, egress_proxy.clone());
            self.egress_proxy = Some(proxy.map_err(|cause| step("start the egress proxy", cause))?);
        }
        Ok(())
    }

    fn open_network(&mut self, some: Vec<OwnedFd>) -> Result<(), StepError> {
        if let (Some(ends), Some(allow)) = (self.ends.take(some), &self.plan.sandbox.allow) {
            let network = OpenNetwork::open(ends, Arc::clone(allow));
            self.network = Some(network.map_err(|cause| step("open the network", cause))?);
            // If init is gone, the closed socket is noticed next.
            let _ = self.running.slot.slot.network_is_open();
        }
        Ok(())
    }
}

fn step(step: &str, cause: Errno) -> StepError {
    StepError { step: step.to_owned(), cause }
}

pub(super) fn has_ended(process: impl AsFd, timeout: Duration) -> Result<bool, Errno> {
    let timeout = Timespec::try_from(timeout).ok();
    Ok(poll(&mut [PollFd::new(&process, PollFlags::IN)], timeout.as_ref())? > 0)
}
