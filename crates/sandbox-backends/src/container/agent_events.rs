//! What an agent reports about a program that is supervised.

use std::io;
use std::time::Instant;

use sandbox_core::{BackendError, StreamKind};
use sandbox_linux::agent;
use sandbox_protocol::Message as _;
use sandbox_protocol::agent::AgentEvent;

use super::channel::{Channel, Received};
use super::exec_request::ExecEncoder;
use crate::error::failed;
use crate::supervise::{InstanceInit, Supervision};

/// Maximum number of messages that are handled between two checks of the deadlines.
const MAX_MESSAGES: usize = 64;

/// Handles the events of one program.
pub(super) struct AgentEvents<'a> {
    encoder: &'a ExecEncoder,
    program: &'a str,
    /// Process 1 of the instance, if it is one.
    instance: Option<&'a InstanceInit>,
    /// Whether there may be unhandled messages in the buffer.
    is_behind: bool,
    /// Whether the agent reported how the program ended, or why it did not start.
    pub(super) is_reported: bool,
}

impl<'a> AgentEvents<'a> {
    pub(super) fn new(
        encoder: &'a ExecEncoder,
        program: &'a str,
        instance: Option<&'a InstanceInit>,
    ) -> Self {
        Self { encoder, program, instance, is_behind: false, is_reported: false }
    }

    /// When to continue at the latest.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        // Do not wait while there are buffered messages.
        self.is_behind.then(Instant::now)
    }

    /// Handles what was left in the buffer.
    pub(super) fn resume(
        &mut self,
        channel: &mut Channel,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        if self.is_behind { self.recv(channel, supervision) } else { Ok(()) }
    }

    /// Handles the messages that are there. Bounded: a program may write as fast as its output is
    /// read, and deadlines must be checked.
    pub(super) fn recv(
        &mut self,
        channel: &mut Channel,
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        self.is_behind = false;
        for _ in 0..MAX_MESSAGES {
            match channel.recv() {
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::End) => supervision.set_over(),
                Ok(Received::Message(message)) => self.handle(&message, supervision)?,
                // The other end was closed before it had read everything.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    supervision.set_over();
                }
                Err(error) => return Err(failed("receive from the agent", error)),
            }
            if supervision.is_over() {
                return Ok(());
            }
        }
        self.is_behind = true;
        Ok(())
    }

    fn handle(
        &mut self,
        message: &[u8],
        supervision: &mut Supervision<'_>,
    ) -> Result<(), BackendError> {
        let event = AgentEvent::decode(message);
        match event.map_err(|error| failed("decode the agent's message", error))? {
            AgentEvent::Started => supervision.start(),
            AgentEvent::Stdout(bytes) => supervision.output(StreamKind::Stdout, bytes),
            AgentEvent::Stderr(bytes) => supervision.output(StreamKind::Stderr, bytes),
            AgentEvent::SyscallDenied { syscall, arguments } => {
                supervision.count_denied(self.encoder.name_of(syscall, arguments));
            }
            AgentEvent::Exited(exit) => {
                self.is_reported = true;
                supervision.exit(agent::exit_notice(exit));
            }
            // What fails while everything is killed is no failure of the program's start.
            AgentEvent::Failed(_) if self.is_killed() => supervision.set_over(),
            AgentEvent::Failed(failure) => {
                self.is_reported = true;
                let cause = io::Error::from_raw_os_error(failure.errno);
                supervision.fail(format!("{}: {}: {cause}", self.program, failure.step));
                supervision.set_over();
            }
            _ => return Err(failed("receive from the agent", "unexpected message")),
        }
        Ok(())
    }

    fn is_killed(&self) -> bool {
        self.instance.is_some_and(|init| init.kill_reason().is_some())
    }
}
