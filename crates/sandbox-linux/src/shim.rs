//! The supervisor's side of an instance: a slot in which any number of programs are started.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, pidfd_send_signal};
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::notice::Notice;

use crate::client::{Received, Slot, ask_to_end, expect, required, try_receive};
use crate::exec_message;
use crate::launch::{LaunchError, connect};
use crate::step::StepError;

/// A program of an instance, through its shim.
#[derive(Debug)]
pub struct Shim {
    /// Receives notices.
    socket: OwnedFd,
    /// Pidfd of the shim.
    process: OwnedFd,
}

impl Slot {
    /// Waits for the next notice while the slot becomes an instance.
    pub fn receive(&self) -> Result<(Notice, Vec<OwnedFd>), LaunchError> {
        expect(self.socket.as_fd(), |_| true)
    }

    /// Starts a program in the instance with these streams: standard input, output and error.
    pub fn start_program(
        &self,
        request: &ExecRequest<'_>,
        streams: [BorrowedFd<'_>; 3],
    ) -> Result<Shim, LaunchError> {
        self.request(request, &streams)
    }

    /// Writes the files of a request in the instance, in place of those that are there.
    pub fn write_files(&self, request: &ExecRequest<'_>) -> Result<(), LaunchError> {
        let shim = self.request(request, &[])?;
        expect(shim.socket.as_fd(), |notice| *notice == Notice::FilesWritten).map(drop)
    }

    fn request(
        &self,
        request: &ExecRequest<'_>,
        streams: &[BorrowedFd<'_>],
    ) -> Result<Shim, LaunchError> {
        let (local, peer) = connect("connect a process")?;
        let mut descriptors = vec![peer.as_fd()];
        descriptors.extend(streams);
        exec_message::send(self.socket.as_fd(), request, &descriptors)?;
        drop(peer);
        let (_, descriptors) = expect(local.as_fd(), |notice| *notice == Notice::Cloned)?;
        Ok(Shim { socket: local, process: required(descriptors.into_iter().next())? })
    }
}

impl Shim {
    /// Readable when there is a notice.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Its pidfd.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Receives the next notice, if there is one.
    pub fn try_receive(&self) -> Result<Received, StepError> {
        try_receive(self.socket.as_fd())
    }

    /// Sends a signal to the program's process group.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(&self.process, signal)
    }

    /// Asks to kill the program and everything that it started, and to report.
    pub fn end(&self) -> Result<(), Errno> {
        ask_to_end(self.process.as_fd())
    }

    /// Lets the shim exit, after its report.
    pub fn release(&self) {
        // It may be gone.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}
