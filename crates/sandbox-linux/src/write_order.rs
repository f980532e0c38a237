//! The order of a program's writes to its two streams.
//!
//! Standard output and standard error are two pipes, and a pipe does not record when its bytes were
//! written: a late reader finds both full and cannot tell their order. But a pipe can send a signal
//! at each write, and real-time signals queue in order, each with its descriptor. Pipes in packet
//! mode keep writes apart. So one signal corresponds to one packet, and reading one packet for each
//! signal restores the order of the writes.
//!
//! One limitation: a write to a full pipe is announced when it blocks and again when it completes,
//! so the reader must keep the pipes from filling up.
//!
//! Packets cost a page and a read each, which slows a program that prints a million short lines.
//! After many packets of one stream in a row there is no order left to lose: the stream is switched
//! back to an ordinary pipe and read in bulk.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::syscall;

/// Which pipe was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The first pipe.
    First,
    /// The second pipe.
    Second,
    /// Either or both: the signal queue of this user overflowed, and the signal names no pipe.
    Unknown,
}

/// Watches the writes to two pipes, on the thread that created it.
///
/// While it exists, its signals are blocked for this thread. Dropping it discards queued signals
/// and restores the mask.
#[derive(Debug)]
pub struct WriteOrder {
    readers: [RawFd; 2],
    queue: OwnedFd,
    mask_before: libc::sigset_t,
    signals: libc::sigset_t,
    /// It reads signals of the thread that created it, so it must stay there.
    _stays_on_its_thread: std::marker::PhantomData<*const ()>,
}

/// The signal for both pipes: one queue preserves the order.
fn write_signal() -> i32 {
    libc::SIGRTMIN() + 2
}

impl WriteOrder {
    /// Starts watching. The readers must outlive this; their writers must be in packet mode from
    /// the first byte on.
    pub fn new(readers: [BorrowedFd<'_>; 2]) -> Result<Self, Errno> {
        let signals = signal_set()?;
        let mask_before = block(&signals)?;
        let order = syscall::signal_descriptor(&signals).map(|queue| Self {
            readers: readers.map(|reader| reader.as_raw_fd()),
            queue,
            mask_before,
            signals,
            _stays_on_its_thread: std::marker::PhantomData,
        });
        match order {
            Ok(order) => {
                // If this fails, dropping `order` sets the mask back.
                for reader in readers {
                    send_signal_at_every_write(reader)?;
                }
                Ok(order)
            }
            Err(error) => {
                set_mask(&mask_before);
                Err(error)
            }
        }
    }

    /// Readable when there were writes.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// The writes so far, in order.
    pub fn take(&self) -> Vec<Written> {
        const MAX_RECORDS: usize = 64;
        // SAFETY: all-zero is a valid signalfd_siginfo, a struct of plain numbers.
        let mut signals: [libc::signalfd_siginfo; MAX_RECORDS] = unsafe { std::mem::zeroed() };
        // SAFETY: read demands writable memory of the length given; whole records are written.
        let length = unsafe {
            libc::read(self.queue.as_raw_fd(), signals.as_mut_ptr().cast(), size_of_val(&signals))
        };
        let count = usize::try_from(length).unwrap_or(0) / size_of::<libc::signalfd_siginfo>();
        signals[..count]
            .iter()
            .filter_map(|signal| match signal.ssi_fd {
                _ if signal.ssi_signo.cast_signed() == libc::SIGIO => Some(Written::Unknown),
                reader if reader == self.readers[0] => Some(Written::First),
                reader if reader == self.readers[1] => Some(Written::Second),
                _ => None,
            })
            .collect()
    }

    /// Stops watching one pipe, which must then be polled.
    pub fn unwatch(reader: BorrowedFd<'_>, writer: BorrowedFd<'_>) -> Result<(), Errno> {
        fcntl_setfl(reader, fcntl_getfl(reader)? & !async_flag())?;
        fcntl_setfl(writer, fcntl_getfl(writer)? & !OFlags::DIRECT)
    }
}

impl Drop for WriteOrder {
    fn drop(&mut self) {
        for reader in self.readers {
            // SAFETY: the readers outlive this, as promised to `new`.
            let reader = unsafe { BorrowedFd::borrow_raw(reader) };
            if let Ok(flags) = fcntl_getfl(reader) {
                let _ = fcntl_setfl(reader, flags & !async_flag());
            }
        }
        // A queued signal would kill the process once it is unblocked.
        let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: sigtimedwait demands a valid set and timeout, and allows no place for information.
        while unsafe {
            libc::sigtimedwait(&raw const self.signals, std::ptr::null_mut(), &raw const nothing)
        } > 0
        {}
        set_mask(&self.mask_before);
    }
}

/// `O_ASYNC`, which rustix does not define.
fn async_flag() -> OFlags {
    OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned())
}

/// The real-time signal, and the plain one that the kernel sends when the queue is full.
fn signal_set() -> Result<libc::sigset_t, Errno> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset writes the whole set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the call above initialised it.
    let mut set = unsafe { set.assume_init() };
    for signal in [write_signal(), libc::SIGIO] {
        // SAFETY: sigaddset demands a valid set and a signal number.
        if unsafe { libc::sigaddset(&raw mut set, signal) } == -1 {
            return Err(Errno::INVAL);
        }
    }
    Ok(set)
}

fn block(set: &libc::sigset_t) -> Result<libc::sigset_t, Errno> {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: pthread_sigmask demands a valid set and a place for the old one.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, before.as_mut_ptr()) };
    if result != 0 {
        return Err(Errno::from_raw_os_error(result));
    }
    // SAFETY: on success the call filled it.
    Ok(unsafe { before.assume_init() })
}

fn set_mask(set: &libc::sigset_t) {
    // SAFETY: pthread_sigmask demands a valid set and allows no place for the old one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) };
}

fn send_signal_at_every_write(reader: BorrowedFd<'_>) -> Result<(), Errno> {
    /// The kernel's `struct f_owner_ex`.
    #[repr(C)]
    struct Owner {
        kind: libc::c_int,
        id: libc::pid_t,
    }
    const THREAD: libc::c_int = 0;
    const F_SETOWN_EX: libc::c_int = 15;
    const F_SETSIG: libc::c_int = 10;
    let owner = Owner { kind: THREAD, id: rustix::thread::gettid().as_raw_nonzero().get() };
    // SAFETY: F_SETOWN_EX demands a pointer to an f_owner_ex, which is read only.
    let directed = unsafe { libc::fcntl(reader.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
    // SAFETY: F_SETSIG takes a number.
    let chosen = unsafe { libc::fcntl(reader.as_raw_fd(), F_SETSIG, write_signal()) };
    if directed == -1 || chosen == -1 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    fcntl_setfl(reader, fcntl_getfl(reader)? | async_flag())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn packet_pipe() -> (OwnedFd, OwnedFd) {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).unwrap();
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        (reader, writer)
    }

    #[test]
    fn writes_are_reported_in_order() {
        let (first, to_first) = packet_pipe();
        let (second, to_second) = packet_pipe();
        let order = WriteOrder::new([first.as_fd(), second.as_fd()]).unwrap();
        let wanted = [
            Written::First,
            Written::First,
            Written::Second,
            Written::First,
            Written::Second,
            Written::Second,
        ];
        for (number, pipe) in wanted.iter().enumerate() {
            let writer = if *pipe == Written::First { &to_first } else { &to_second };
            rustix::io::write(writer, &[u8::try_from(number).unwrap()]).unwrap();
        }
        assert_eq!(order.take(), wanted);
        let mut read = Vec::new();
        for pipe in wanted {
            let mut byte = [0; 8];
            let reader = if pipe == Written::First { &first } else { &second };
            assert_eq!(rustix::io::read(reader, &mut byte), Ok(1), "packets were merged");
            read.push(byte[0]);
        }
        assert_eq!(read, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_signal_that_names_no_pipe_stands_for_both() {
        let (first, _to_first) = packet_pipe();
        let (second, _to_second) = packet_pipe();
        let order = WriteOrder::new([first.as_fd(), second.as_fd()]).unwrap();
        // What the kernel sends when the signal queue is full.
        // SAFETY: pthread_self has no demands.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: pthread_kill demands a living thread and a signal number; this thread blocks it.
        assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGIO) }, 0);
        assert_eq!(order.take(), [Written::Unknown]);
    }

    #[test]
    fn dropping_it_leaves_no_signal_behind() {
        let (first, to_first) = packet_pipe();
        let (second, _to_second) = packet_pipe();
        let before = block(&signal_set().unwrap()).unwrap();
        set_mask(&before);
        let order = WriteOrder::new([first.as_fd(), second.as_fd()]).unwrap();
        rustix::io::write(&to_first, b"x").unwrap();
        // If the signal were unblocked, its default action would kill this test's process.
        drop(order);
        rustix::io::write(&to_first, b"x").unwrap();
        let after = block(&signal_set().unwrap()).unwrap();
        set_mask(&after);
        // SAFETY: sigismember demands a valid set and a signal number.
        assert_eq!(unsafe { libc::sigismember(&raw const after, write_signal()) }, 0);
    }
}
