//! Installs a filter.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libc::{c_long, c_ulong, sock_filter, sock_fprog};
use rustix::io::Errno;

/// Whether denied calls are sent to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Return a listener for denied calls. A chain of filters can have one.
    Wanted,
    /// No listener: the filter must not use notifications, or those calls fail with ENOSYS.
    Unwanted,
}

/// Installs a filter for the calling thread and everything it starts from now on.
///
/// The caller must have set `no_new_privs`, or hold CAP_SYS_ADMIN in its user namespace. The filter
/// applies to the very next call, so it must allow `close`, `sendmsg` and whatever else happens
/// before `execve`. The listener is close-on-exec.
///
/// This allocates nothing and takes no lock, so that it may run in a child between clone and exec.
pub fn install(instructions: &[sock_filter], listener: Listener) -> Result<Option<OwnedFd>, Errno> {
    // SPEC_ALLOW is left out: it would disable CPU mitigations for the untrusted program.
    match listener {
        Listener::Unwanted => set_filter(instructions, 0).map(|_| None),
        Listener::Wanted => {
            // With WAIT_KILLABLE_RECV a signal does not restart a call that the supervisor has
            // already received, which would count it twice. Linux before 5.19 lacks it.
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

/// The error number of the last failed call.
pub(super) fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
