//! Denied system calls of one sandbox: answers and counts them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sandbox_linux::seccomp::{Notification, Notifications};

use super::host::Host;
use crate::supervise::Supervision;

/// After this many denied calls, each further answer is delayed: answering costs the supervisor CPU
/// time that no limit of the program covers.
const MAX_FAST_ANSWERS: u64 = 1000;
const ANSWER_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) struct DeniedCalls {
    listener: Option<Notifications>,
    answered: u64,
    /// No denied call is answered before this time.
    next_answer: Option<Instant>,
}

impl DeniedCalls {
    pub(crate) fn new(listener: Option<Notifications>) -> Self {
        Self { listener, answered: 0, next_answer: None }
    }

    /// Uses another listener, of a process that was confined later.
    pub(crate) fn listen(&mut self, listener: Option<Notifications>) {
        self.listener = listener;
    }

    /// Readable when a call was denied; `None` while answers are delayed.
    pub(crate) fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().filter(|_| self.next_answer.is_none()).map(AsFd::as_fd)
    }

    /// When delayed answers resume.
    pub(crate) fn next_answer(&self) -> Option<Instant> {
        self.next_answer
    }

    /// Resumes delayed answers, if it is time.
    pub(crate) fn resume(&mut self, now: Instant) {
        if self.next_answer.is_some_and(|at| at <= now) {
            self.next_answer = None;
        }
    }

    /// The next denied call, if there is one.
    pub(crate) fn receive(&mut self) -> Option<Notification> {
        let listener = self.listener.as_ref()?;
        match listener.receive() {
            Ok(Some(call)) => return Some(call),
            Ok(None) if !listener.is_over() => {}
            Ok(None) | Err(_) => self.listener = None,
        }
        None
    }

    /// Answers a call with its error, and counts it unless it announces an exit.
    pub(crate) fn refuse(
        &mut self,
        call: &Notification,
        host: &Host,
        supervision: &mut Supervision<'_>,
    ) {
        let (name, errno) = host.refusal(call);
        if let Some(listener) = &self.listener {
            // A thread that died meanwhile needs no answer.
            let _ = listener.refuse(call.id, errno);
        }
        self.answered += 1;
        if self.answered > MAX_FAST_ANSWERS {
            self.next_answer = Some(Instant::now() + ANSWER_INTERVAL);
        }
        if !call.is_early_exit() {
            supervision.count_denied(name);
        }
    }

    /// Takes the listener, so that its calls stay unanswered for as long as it is kept.
    pub(crate) fn take_listener(&mut self) -> Option<Notifications> {
        self.listener.take()
    }
}
