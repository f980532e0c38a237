//! Putting a filter in force.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libc::{c_long, c_ulong, sock_filter, sock_fprog};
use rustix::io::Errno;

/// Whether denied calls are handed to someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// A descriptor is wanted on which denied calls arrive. There can be one in a chain of filters.
    Wanted,
    /// Nobody listens: the filter must not hand calls over, or they fail with ENOSYS.
    Unwanted,
}

/// Installs a filter for the calling thread and everything it starts from now on.
///
/// The caller must have set `no_new_privs`, or hold CAP_SYS_ADMIN in its user namespace. The filter
/// is in force for the very next call, so `close`, `sendmsg` and whatever else is still to be done
/// before `execve` must be among what it allows. The listener is close-on-exec.
///
/// This allocates nothing and takes no lock, so that it may run in a child between clone and exec.
pub fn install(instructions: &[sock_filter], listener: Listener) -> Result<Option<OwnedFd>, Errno> {
    // SPEC_ALLOW is left out: it would lift processor mitigations from the very program we
    // distrust.
    match listener {
        Listener::Unwanted => set_filter(instructions, 0).map(|_| None),
        Listener::Wanted => {
            // With WAIT_KILLABLE_RECV a call that the supervisor has already read is not restarted
            // by every signal that comes in, which would count it twice. Linux before 5.19 lacks
            // it.
            let wanted = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            let restart_free = wanted | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
            let descriptor = match set_filter(instructions, restart_free) {
                Err(Errno::INVAL) => set_filter(instructions, wanted)?,
                other => other?,
            };
            let descriptor = RawFd::try_from(descriptor).map_err(|_| Errno::BADF)?;
            // SAFETY: with NEW_LISTENER the kernel returns a new descriptor that nobody else owns.
            Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }))
        }
    }
}

/// The bare system call, which neither libc nor rustix wraps.
fn set_filter(instructions: &[sock_filter], flags: c_ulong) -> Result<c_long, Errno> {
    let program = sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    let operation = c_long::from(libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: seccomp(2) wants a pointer to a `sock_fprog` whose `filter` points to `len`
    // instructions. Both are alive across the call, and the kernel only copies from them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program) };
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// The errno that the failed call before has left.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
