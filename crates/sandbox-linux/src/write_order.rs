//! In which order a program wrote to its two streams.
//!
//! Standard output and standard error are two pipes, and a pipe does not tell when its bytes were
//! written: a reader that wakes up late finds both full and no order between them. The kernel does
//! know, though. A pipe can be told to send a signal at every write, and signals of the real-time kind
//! queue up in order, each with the descriptor it is about. Pipes in packet mode keep writes apart. So
//! one signal stands for one packet, and reading a packet per signal gives the order of the writes.
//!
//! One thing blurs this: a write that finds its pipe full is announced when it begins to wait and again
//! when it is done, so the reader must keep the pipes from filling up.
//!
//! Packets cost a page and a read each, which a program that prints a million short lines would feel.
//! After many packets of one stream in a row there is no order left to lose: the stream then goes back
//! to an ordinary pipe, read in bulk, and order is kept as well as the reader is quick.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::syscall;

/// What was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The first pipe.
    First,
    /// The second pipe.
    Second,
    /// One of them or both: so many signals were queued for this user that the kernel told no more.
    Unknown,
}

/// Listens to the writes on two pipes, on the thread that made it.
///
/// While it lives, the signals it uses are blocked for this thread. Dropping it takes what is still
/// queued and sets the mask back.
#[derive(Debug)]
pub struct WriteOrder {
    readers: [RawFd; 2],
    queue: OwnedFd,
    mask_before: libc::sigset_t,
    ours: libc::sigset_t,
    /// It reads signals of the thread it was made on, so it must stay there.
    _stays_on_its_thread: std::marker::PhantomData<*const ()>,
}

/// The signal for both pipes: one queue keeps one order.
fn write_signal() -> i32 {
    libc::SIGRTMIN() + 2
}

impl WriteOrder {
    /// Starts listening. The readers must outlive this; their writers must be in packet mode from the
    /// first byte on.
    pub fn new(readers: [BorrowedFd<'_>; 2]) -> Result<Self, Errno> {
        let ours = signal_set()?;
        let mask_before = block(&ours)?;
        let order = syscall::signal_descriptor(&ours).map(|queue| Self {
            readers: readers.map(|reader| reader.as_raw_fd()),
            queue,
            mask_before,
            ours,
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

    /// To be polled: readable when something was written.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// What was written to, in order, as far as known now.
    pub fn take(&self) -> Vec<Written> {
        const AT_ONCE: usize = 64;
        // SAFETY: all-zero is a valid signalfd_siginfo, a struct of plain numbers.
        let mut signals: [libc::signalfd_siginfo; AT_ONCE] = unsafe { std::mem::zeroed() };
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

    /// Stops listening to one pipe, which is then polled like any other.
    pub fn let_go(reader: BorrowedFd<'_>, writer: BorrowedFd<'_>) -> Result<(), Errno> {
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
        // What is still queued would end the process as soon as it is let through.
        let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: sigtimedwait demands a valid set and timeout, and allows no place for information.
        while unsafe {
            libc::sigtimedwait(&raw const self.ours, std::ptr::null_mut(), &raw const nothing)
        } > 0
        {}
        set_mask(&self.mask_before);
    }
}

/// `O_ASYNC`, which rustix has no name for.
fn async_flag() -> OFlags {
    OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned())
}

/// Our signal, and the plain one that the kernel falls back to when its queue is full.
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
    fn writes_are_told_in_the_order_they_were_made() {
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
        // What the kernel falls back to when the queue of signals is full.
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
        // Were the signal let through, its default action would end this test's process.
        drop(order);
        rustix::io::write(&to_first, b"x").unwrap();
        let after = block(&signal_set().unwrap()).unwrap();
        set_mask(&after);
        // SAFETY: sigismember demands a valid set and a signal number.
        assert_eq!(unsafe { libc::sigismember(&raw const after, write_signal()) }, 0);
    }
}
