//! The supervisor's end of the filter: receives denied calls and returns errors for them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{c_long, c_void, seccomp_notif, seccomp_notif_resp, seccomp_notif_sizes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::install::last_errno;

/// The denied calls of a filter, which wait for their answers.
///
/// Poll the descriptor for reading, then call [`Notifications::receive`] until it returns `None`.
/// The poll reports a hang-up once the last process under the filter is gone. Only one thread
/// should do this: a second one could take a call between the poll and the read, and the first
/// would block.
#[derive(Debug)]
pub struct Notifications {
    listener: OwnedFd,
    /// Sizes of the running kernel's structs. They may be larger than those defined here.
    sizes: seccomp_notif_sizes,
}

/// A denied call. The caller is blocked until [`Notifications::refuse`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The kernel's ID of this notification, for the answer.
    pub id: u64,
    /// The calling thread's ID in the supervisor's PID namespace; 0 if it has none there.
    pub thread: u32,
    /// The architecture of the call (`AUDIT_ARCH_*`). The filter allows only one.
    pub audit_arch: u32,
    /// The number of the call.
    pub number: u32,
    /// Its arguments. Pointers refer to the program's memory.
    pub arguments: [u64; 6],
}

/// An offset that no file has. A waiting runtime reads at it to announce that it is about to exit
/// with code 0 and has nothing left to do. The call never returns, so that the response need not
/// wait for the kernel to end the process, which takes longer than a short program.
const EARLY_EXIT: u64 = 0x7ba5_e1f0_0000_0000;

impl Notification {
    /// Whether a runtime announces its exit with this call.
    pub fn is_early_exit(&self) -> bool {
        i64::from(self.number) == libc::SYS_pread64 && self.arguments[3] == EARLY_EXIT
    }
}

impl Notifications {
    /// Takes ownership of the descriptor that [`install`](super::install) returned.
    pub fn new(listener: OwnedFd) -> Result<Self, Errno> {
        let mut sizes =
            seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
        let operation = c_long::from(libc::SECCOMP_GET_NOTIF_SIZES);
        // SAFETY: for this operation seccomp(2) wants a pointer to a `seccomp_notif_sizes` that it
        // can write to; `sizes` is one and outlives the call.
        let result = unsafe { libc::syscall(libc::SYS_seccomp, operation, 0, &raw mut sizes) };
        if result < 0 {
            return Err(last_errno());
        }
        Ok(Self { listener, sizes })
    }

    /// Receives the next denied call, without blocking.
    ///
    /// `None` means that there is none, or that its caller died first.
    pub fn receive(&self) -> Result<Option<Notification>, Errno> {
        let mut look = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut look, Some(&Timespec::default())) {
            Ok(_) if look[0].revents().contains(PollFlags::IN) => {}
            Ok(_) | Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        // The kernel requires zeroed memory, and fills as much as its own struct has.
        let mut buffer = Zeroed::<seccomp_notif>::new(self.sizes.seccomp_notif);
        match self.ioctl(libc::SECCOMP_IOCTL_NOTIF_RECV, buffer.as_mut_ptr()) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        // SAFETY: the buffer is aligned for and at least as large as a `seccomp_notif`, and every
        // bit pattern is one, since it is made of integers alone.
        let received = unsafe { buffer.as_mut_ptr().cast::<seccomp_notif>().read() };
        Ok(Some(Notification {
            id: received.id,
            thread: received.pid,
            audit_arch: received.data.arch,
            number: received.data.nr.cast_unsigned(),
            arguments: received.data.args,
        }))
    }

    /// Whether all filtered processes are dead. The descriptor is then always ready, with nothing
    /// to receive: it must no longer be polled.
    pub fn is_over(&self) -> bool {
        let mut look = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut look, Some(&Timespec::default())).is_ok()
            && look[0].revents().contains(PollFlags::HUP)
    }

    /// Answers a call with `errno`. If its caller is dead, there is nothing to answer, which is
    /// fine.
    pub fn refuse(&self, id: u64, errno: i32) -> Result<(), Errno> {
        let response = seccomp_notif_resp { id, val: 0, error: -errno.abs(), flags: 0 };
        let mut buffer = Zeroed::<seccomp_notif_resp>::new(self.sizes.seccomp_notif_resp);
        let place = buffer.as_mut_ptr().cast::<seccomp_notif_resp>();
        // SAFETY: the buffer is aligned for and at least as large as a `seccomp_notif_resp`.
        unsafe { place.write(response) };
        match self.ioctl(libc::SECCOMP_IOCTL_NOTIF_SEND, buffer.as_mut_ptr()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    fn ioctl(&self, request: libc::Ioctl, buffer: *mut c_void) -> Result<(), Errno> {
        // SAFETY: both requests made here want a pointer to a struct of the size that the kernel
        // reported, which is what `Zeroed` makes; the descriptor is open as long as `self` lives.
        let result = unsafe { libc::ioctl(self.listener.as_raw_fd(), request, buffer) };
        if result < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

impl From<Notifications> for OwnedFd {
    /// While it is open, callers wait for their answers.
    fn from(notifications: Notifications) -> Self {
        notifications.listener
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Zeroed memory for a kernel struct that is `T` here and may be longer in the kernel.
struct Zeroed<T> {
    words: Vec<u64>,
    kind: std::marker::PhantomData<T>,
}

impl<T> Zeroed<T> {
    fn new(kernel_size: u16) -> Self {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let size = size_of::<T>().max(usize::from(kernel_size));
        Self { words: vec![0; size.div_ceil(size_of::<u64>())], kind: std::marker::PhantomData }
    }

    fn as_mut_ptr(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().cast()
    }
}
