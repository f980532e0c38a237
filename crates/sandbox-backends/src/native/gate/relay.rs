//! Bytes carried between two connections until both sides have said all.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::PollFlags;

use super::closing::Closing;

/// A connection on which neither side says anything for this long is closed.
const SILENCE: Duration = Duration::from_mins(2);

/// Sends all of it.
pub(super) fn send(mut to: &TcpStream, closing: &Closing, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        closing.wait(&[(to.as_fd(), PollFlags::OUT)], SILENCE)?;
        match to.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Relays until both directions are at their end, one fails, or nothing was said for long.
pub(super) fn both_ways(left: &TcpStream, right: &TcpStream, closing: &Closing) -> io::Result<()> {
    let mut there = Direction::new(left, right);
    let mut back = Direction::new(right, left);
    while !(there.is_over() && back.is_over()) {
        let watched: Vec<_> = [&there, &back].iter().filter_map(|way| way.waits_for()).collect();
        let watched: Vec<_> =
            watched.iter().map(|(stream, flags)| (stream.as_fd(), *flags)).collect();
        closing.wait(&watched, SILENCE)?;
        there.step()?;
        back.step()?;
    }
    Ok(())
}

/// One direction: what was read and is not yet written.
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

    /// Reads if there is room and writes what there is, as far as both go without waiting.
    fn step(&mut self) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        if self.start == self.end {
            match self.from.read(&mut self.buffer) {
                Ok(0) => {
                    self.over = true;
                    // The other side may be gone already, and needs no telling then.
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
