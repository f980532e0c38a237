//! The order of writes to two pipes.
//!
//! The kernel can send a real-time signal for each write to a pipe. These signals queue in order, and each names its
//! descriptor. See `write_order.rs` of sandbox-linux for the reasons and the limits.

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::sys::{change_flags, check, check_fd, control};

/// A real-time signal: each one queues.
const WRITE_SIGNAL: c_int = 36;
/// What the kernel sends instead when the queue is full. It names no pipe.
const SIGIO: c_int = 29;
const O_ASYNC: c_int = 0o20_000;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn read(fd: c_int, bytes: *mut u8, length: usize) -> isize;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut c_void) -> c_int;
}

/// The C library's `sigset_t`. The first word is the kernel's.
#[repr(C)]
pub(crate) struct SignalSet(pub(crate) [u64; 16]);

/// One record of the signal queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// The pipe with this descriptor was written to.
    To(c_int),
    /// Some pipe was written to.
    Unknown,
}

/// Starts watching. The queue becomes readable when a pipe is written to.
pub(crate) fn watch(readers: [&OwnedFd; 2]) -> io::Result<OwnedFd> {
    const SIG_BLOCK: c_int = 0;
    const SFD_CLOEXEC_NONBLOCK: c_int = 0o2_004_000;
    const SYS_SIGNALFD4: c_long = if cfg!(target_arch = "aarch64") { 74 } else { 289 };
    const NEW: c_long = -1;
    const KERNEL_SET_BYTES: usize = 8;
    const F_SETOWN: c_int = 8;
    const F_SETSIG: c_int = 10;
    let mut set = SignalSet([0; 16]);
    set.0[0] = (1 << (WRITE_SIGNAL - 1)) | (1 << (SIGIO - 1));
    // SAFETY: sigprocmask(2) reads a set of the C library's size and, with a null pointer, writes none.
    check(unsafe { sigprocmask(SIG_BLOCK, &raw const set, std::ptr::null_mut()) })?;
    // SAFETY: signalfd4(2) reads so many bytes of the set as it is told, which the set has.
    let queue = unsafe {
        syscall(SYS_SIGNALFD4, NEW, &raw const set, KERNEL_SET_BYTES, SFD_CLOEXEC_NONBLOCK)
    };
    // SAFETY: the call opens a descriptor, which nothing else owns.
    let queue = unsafe { check_fd(queue) }?;
    let process = c_int::try_from(std::process::id()).map_err(io::Error::other)?;
    for reader in readers {
        control(reader, F_SETOWN, process)?;
        control(reader, F_SETSIG, WRITE_SIGNAL)?;
        change_flags(reader, O_ASYNC, 0)?;
    }
    Ok(queue)
}

/// Stops the signals of one pipe.
pub(crate) fn unwatch(reader: &impl std::os::fd::AsFd) {
    // It cannot fail for a pipe that is open.
    let _ = change_flags(reader, 0, O_ASYNC);
}

/// The writes since the last call, in order.
pub(crate) fn take(queue: &OwnedFd) -> Vec<Write> {
    const RECORDS: usize = 64;
    let mut records = [0_u8; RECORD_BYTES * RECORDS];
    // SAFETY: read(2) writes at most so many bytes as it is told, which the array has.
    let length = unsafe { read(queue.as_raw_fd(), records.as_mut_ptr(), records.len()) };
    let length = usize::try_from(length).unwrap_or(0);
    records[..length].chunks_exact(RECORD_BYTES).filter_map(parse).collect()
}

/// Size of the kernel's `struct signalfd_siginfo`.
const RECORD_BYTES: usize = 128;

fn parse(record: &[u8]) -> Option<Write> {
    const SIGNAL: usize = 0;
    const FD: usize = 20;
    let number = |at: usize| Some(c_int::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    Some(if number(SIGNAL)? == SIGIO { Write::Unknown } else { Write::To(number(FD)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::tests::in_child;
    use crate::sys::{packet_pipe, write_byte};

    /// The signals are for the process, and each of its threads has to block them.
    #[test]
    fn writes_are_reported_in_order_until_a_pipe_is_not_watched_any_more() {
        in_child(|| {
            // Not on every kernel.
            let (Ok((first, to_first)), Ok((second, to_second))) = (packet_pipe(), packet_pipe())
            else {
                return;
            };
            let queue = watch([&first, &second]).unwrap();
            assert_eq!(take(&queue), []);
            for writer in [&to_second, &to_first, &to_first, &to_second] {
                write_byte(writer.as_raw_fd());
            }
            let fds = [&first, &second].map(|pipe| Write::To(pipe.as_raw_fd()));
            assert_eq!(take(&queue), [fds[1], fds[0], fds[0], fds[1]]);
            unwatch(&first);
            write_byte(to_first.as_raw_fd());
            write_byte(to_second.as_raw_fd());
            assert_eq!(take(&queue), [fds[1]]);
        });
    }

    #[test]
    fn the_signal_of_a_full_queue_names_no_pipe() {
        let mut record = [0; RECORD_BYTES];
        record[20] = 5;
        record[0] = 36;
        assert_eq!(parse(&record), Some(Write::To(5)));
        record[0] = 29;
        assert_eq!(parse(&record), Some(Write::Unknown));
        assert_eq!(parse(&record[..2]), None);
    }
}
