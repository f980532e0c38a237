//! Relays bytes between two connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::PollFlags;

use super::stop::StopSignal;

/// An idle connection is closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);

/// Sends all bytes.
pub(super) fn send(mut to: &TcpStream, stop: &StopSignal, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        stop.wait(&[(to.as_fd(), PollFlags::OUT)], IDLE_TIMEOUT)?;
        match to.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Relays until both directions have ended, one fails, or the connection is idle for too long.
pub(super) fn both_ways(left: &TcpStream, right: &TcpStream, stop: &StopSignal) -> io::Result<()> {
    let mut there = Direction::new(left, right);
    let mut back = Direction::new(right, left);
    while !(there.is_over() && back.is_over()) {
        let watched: Vec<_> =
            [&there, &back].iter().filter_map(|direction| direction.waits_for()).collect();
        let watched: Vec<_> =
            watched.iter().map(|(stream, flags)| (stream.as_fd(), *flags)).collect();
        stop.wait(&watched, IDLE_TIMEOUT)?;
        there.step()?;
        back.step()?;
    }
    Ok(())
}

/// One direction: bytes that were read and not yet written.
struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    over: bool,
}

impl<'a> Direction<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream) -> Self {
        Self { from, to, buffer: vec![0; 16 * 1024], start: 0, end: 0, over: false }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn waits_for(&self) -> Option<(&'a TcpStream, PollFlags)> {
        match self.over {
            true => None,
            false if self.start < self.end => Some((self.to, PollFlags::OUT)),
            false => Some((self.from, PollFlags::IN)),
        }
    }

    /// Reads and writes as much as possible without blocking.
    fn step(&mut self) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        if self.start == self.end {
            match self.from.read(&mut self.buffer) {
                Ok(0) => {
                    self.over = true;
                    // The other side may have closed already.
                    let _ = self.to.shutdown(Shutdown::Write);
                    return Ok(());
                }
                Ok(count) => (self.start, self.end) = (0, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        match self.to.write(&self.buffer[self.start..self.end]) {
            Ok(count) => self.start += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
