//! What the supervisor and the agent say to each other, over two streams of bytes.
//!
//! Shared by both: the agent is compiled from this file, and the supervisor's side includes it. It needs nothing but
//! the standard library.

use std::io::{self, Read, Write};

/// A message: one byte for its kind, four for its length, and so many more.
pub const HEAD: usize = 5;
/// Longer messages are nobody's: what is sent is cut before, and what comes from inside is not believed.
pub const LONGEST: usize = 1 << 30;

/// What the supervisor says.
pub mod to_agent {
    /// The program and everything it needs.
    pub const ORDER: u8 = 1;
    /// A part of its standard input.
    pub const INPUT: u8 = 2;
    /// There is no more.
    pub const INPUT_END: u8 = 3;
    /// A signal for the program.
    pub const SIGNAL: u8 = 4;
    /// The content of a file is wanted.
    pub const FETCH: u8 = 5;
}

/// What the agent says.
pub mod to_supervisor {
    /// It waits for an order.
    pub const READY: u8 = 16;
    /// The program is about to start.
    pub const STARTED: u8 = 17;
    /// It wrote this to its standard output.
    pub const STDOUT: u8 = 18;
    /// And this to its standard error.
    pub const STDERR: u8 = 19;
    /// It ended, and everything that it started.
    pub const EXITED: u8 = 20;
    /// A file that it left: its mode, its size and its path.
    pub const NAME: u8 = 21;
    /// Those were all.
    pub const NAMES_END: u8 = 22;
    /// The content of a file that was asked for.
    pub const FILE: u8 = 23;
    /// It cannot be had.
    pub const NO_FILE: u8 = 24;
    /// A call of it was denied: its number and its arguments.
    pub const DENIED: u8 = 26;
    /// A step failed: an error number, and what was being done.
    pub const FAILED: u8 = 25;
}

/// Sends one message.
pub fn send(to: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(HEAD + payload.len());
    message.extend_from_slice(&head(kind, payload.len()));
    message.extend_from_slice(payload);
    to.write_all(&message)
}

/// How a message begins.
pub fn head(kind: u8, length: usize) -> [u8; HEAD] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    [kind, a, b, c, d]
}

/// Receives one message; none at the end.
pub fn receive(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; HEAD];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = length_of(head).ok_or(io::ErrorKind::InvalidData)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok(Some((head[0], payload)))
}

/// The length of what follows this beginning, if it is believable.
pub fn length_of([_, a, b, c, d]: [u8; HEAD]) -> Option<usize> {
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
    (length <= LONGEST).then_some(length)
}

/// Writes values one after the other.
#[derive(Debug, Default)]
pub struct Packer(pub Vec<u8>);

impl Packer {
    /// A number.
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Bytes, with their number before them.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }
}

/// Reads them back.
#[derive(Debug)]
pub struct Unpacker<'a>(pub &'a [u8]);

impl<'a> Unpacker<'a> {
    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Values of one kind, with their number before them.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| read(self)).collect()
    }
}
