//! A process of an instance, and its supervision.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sandbox_core::{
    BackendError, CancelToken, Observer, Process, ProcessLimits, ProcessOutcome, ProcessSpec,
    StageUsage,
};
use sandbox_linux::cgroup::Usage;
use sandbox_protocol::notice::ExitNotice;

use super::agent_events::AgentEvents;
use super::channel::SignalSender;
use super::connection::Connection;
use super::exec_request::ExecEncoder;
use super::instance::{LiveContainer, lock};
use super::supervise::Container;
use crate::error::failed;
use crate::process_tree::cpu_time_below;
use crate::supervise::{
    Cause, Counters, Ended, KillReason, Supervised, Supervision, Terms, supervise,
};

/// The signal that asks a program to end.
const SIGTERM: u8 = 15;
const SIGSTOP: u8 = 19;
const SIGNALS: std::ops::RangeInclusive<u8> = 1..=64;

/// A process that the agent runs.
pub(super) struct ContainerProcess<'a, C: Container> {
    encoder: &'a ExecEncoder,
    live: Arc<LiveContainer<C>>,
    program: String,
    limits: ProcessLimits,
    /// Until it is waited for.
    connection: Mutex<Option<Connection>>,
    signals: SignalSender,
    /// The process of its shim.
    shim: Option<u32>,
    before: Usage,
}

impl<'a, C: Container> ContainerProcess<'a, C> {
    /// Has the agent start a process.
    pub(super) fn start(
        encoder: &'a ExecEncoder,
        live: Arc<LiveContainer<C>>,
        exec: &[u8],
        spec: &ProcessSpec,
        limits: ProcessLimits,
    ) -> Result<Self, BackendError> {
        let before = live.container.cgroup().usage();
        let before = before.map_err(|error| failed("read what the container used", error))?;
        let (connection, shim) = live.connect()?;
        let process = Self {
            encoder,
            live,
            program: spec.command.first().cloned().unwrap_or_default(),
            limits,
            signals: connection.signals(),
            connection: Mutex::new(None),
            shim,
            before,
        };
        // From here on, dropping it ends the process.
        if process.shim.is_none() && limits.cpu_time.is_some() {
            return Err(failed("limit the CPU time", "the process cannot be told from others"));
        }
        let sent = connection.send_frame(exec).and_then(|()| connection.feed(&spec.stdin));
        match sent {
            // It has ended before it could read its input; the agent's report is there.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent.map_err(|error| failed("send the request to the agent", error))?,
        }
        *lock(&process.connection) = Some(connection);
        Ok(process)
    }
}

impl<C: Container> Drop for ContainerProcess<'_, C> {
    fn drop(&mut self) {
        // Ends the process, unless it was waited for.
        drop(lock(&self.connection).take());
        self.live.disconnected();
    }
}

impl<C: Container + Send + Sync> Process for ContainerProcess<'_, C> {
    fn wait(
        &self,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<ProcessOutcome, BackendError> {
        let connection = lock(&self.connection).take();
        let connection =
            connection.ok_or_else(|| failed("wait for the process", "it was waited for"))?;
        let cgroup = self.live.container.cgroup();
        let terms = Terms {
            limits: self.limits,
            cpus: self.live.sandbox.limits.cpus(),
            usage_interval: None,
            started: None,
            oom: cgroup.oom_watch().map_err(|error| failed("watch the memory", error))?,
        };
        let events = AgentEvents::new(self.encoder, &self.program, Some(&self.live.agent));
        let mut running = Running { process: self, connection, events };
        let ended = supervise(&mut running, terms, observer, cancel);
        if !running.events.is_reported {
            // Without the agent's report, something may be left of the process.
            self.live.kill(KillReason::Failure);
        }
        self.conclude(ended?)
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        let number = u8::try_from(signal).ok();
        // As in other sandboxes, whose guards it would stop too.
        let number = number.filter(|signal| SIGNALS.contains(signal) && *signal != SIGSTOP);
        let number = number
            .ok_or_else(|| BackendError::Refused(format!("signal {signal} cannot be sent")))?;
        match self.signals.send(number) {
            // It has ended.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(|error| failed("send a signal to the process", error)),
        }
    }
}

impl<C: Container> ContainerProcess<'_, C> {
    fn conclude(&self, mut ended: Ended) -> Result<ProcessOutcome, BackendError> {
        let oom_kills = self.live.container.cgroup().oom_kills();
        let oom_kills =
            oom_kills.map_err(|error| failed("read the OOM counter of the container", error))?;
        if oom_kills > 0 {
            // Of all processes together; whatever the kernel chose, the others lack it.
            self.live.kill(KillReason::Cause(Cause::Memory));
        }
        if let (None, Some(KillReason::Cause(cause))) = (&ended.exit, self.live.kill_reason()) {
            ended.cause.get_or_insert(cause);
        }
        let none = ExitNotice::default();
        let exit = ended.exit.as_ref().unwrap_or(&none);
        let usage = StageUsage {
            wall_time: ended.wall_time(),
            cpu_user: Duration::from_micros(exit.user_micros),
            cpu_system: Duration::from_micros(exit.system_micros),
            memory_peak_kb: exit.max_rss_kib,
            // Nothing counts the processes of one among several.
            processes_peak: 1,
            io_read_bytes: exit.read_bytes,
            io_write_bytes: exit.written_bytes,
        };
        let ending = ended
            .ending(oom_kills, &usage)
            .ok_or_else(|| failed("watch the process", "it ended without an exit status"))?;
        let Ended { output, violations, .. } = ended;
        let (stdout, stderr) = (output.stdout, output.stderr);
        Ok(ProcessOutcome { ending, usage, stdout, stderr, violations })
    }
}

/// A process that is waited for.
struct Running<'a, C: Container> {
    process: &'a ContainerProcess<'a, C>,
    connection: Connection,
    events: AgentEvents<'a>,
}

impl<C: Container> Supervised for Running<'_, C> {
    /// The connection to the shim.
    type Source = ();

    const START: &'static str = "have the agent start the program";

    /// More than the agent gives itself: other processes end with the sandbox.
    const KILL_GRACE: Duration = Duration::from_secs(3);

    const IS_SHARED: bool = true;

    fn sources(&self) -> impl Iterator<Item = ((), BorrowedFd<'_>)> {
        std::iter::once(((), self.connection.fd()))
    }

    fn handle(&mut self, (): (), supervision: &mut Supervision<'_>) -> Result<(), BackendError> {
        self.events.recv(&mut self.connection, supervision)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.events.next_deadline()
    }

    fn on_time(
        &mut self,
        _: Instant,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        self.events.resume(&mut self.connection, supervision)
    }

    fn terminate(&mut self) {
        self.connection.signal(SIGTERM);
    }

    fn kill_program(&mut self) {
        self.connection.end_requests();
    }

    fn kill_sandbox(&mut self, cause: Cause) {
        // Memory is a limit of all processes together. Else this one did not end.
        self.process.live.kill(match cause {
            Cause::Memory => KillReason::Cause(cause),
            _ => KillReason::Failure,
        });
    }

    fn is_gone(&self) -> bool {
        // The runtime does not report that the container ended.
        false
    }

    fn counters(&self) -> Counters<'_> {
        let container = &self.process.live.container;
        Counters {
            cgroup: container.cgroup(),
            before: &self.process.before,
            own_processes: container.own_processes(),
            own_memory: container.own_memory(),
            agent: container.agent(),
            init: None,
        }
    }

    fn cpu_time(&self) -> Duration {
        self.process.shim.map(cpu_time_below).unwrap_or_default()
    }
}
