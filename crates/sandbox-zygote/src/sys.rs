//! System calls. Those that take numbers only can be made without unsafe code.

use core::ffi::{c_int, c_long};

#[link(name = "c")]
unsafe extern "C" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    fn __errno_location() -> *mut c_int;
}

/// A system call all of whose arguments are numbers: descriptors, ids, flags.
#[derive(Clone, Copy)]
pub(crate) struct NumericCall(c_long);

impl NumericCall {
    /// Makes the call. A result of -1 is an error, of which [`errno`] has the number.
    pub(crate) fn call(self, first: c_long, second: c_long, third: c_long) -> c_long {
        // SAFETY: the kernel accesses memory only through pointers. The constants below, the only values of this type,
        // are calls that take none, at most three arguments, and leave this process' memory as it is.
        unsafe { syscall(self.0, first, second, third) }
    }
}

/// Picks the number of this machine.
const fn pick(x86_64: c_long, aarch64: c_long) -> c_long {
    if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 }
}

const fn numeric(x86_64: c_long, aarch64: c_long) -> NumericCall {
    NumericCall(pick(x86_64, aarch64))
}

pub(crate) const CLOSE: NumericCall = numeric(3, 57);
pub(crate) const CLOSE_RANGE: NumericCall = numeric(436, 436);
pub(crate) const DUP3: NumericCall = numeric(292, 24);
pub(crate) const GETPID: NumericCall = numeric(39, 172);
pub(crate) const KEYCTL_JOIN_SESSION: NumericCall = numeric(250, 219);
pub(crate) const LANDLOCK_RESTRICT_SELF: NumericCall = numeric(446, 446);
pub(crate) const PIDFD_OPEN: NumericCall = numeric(434, 434);
pub(crate) const SETNS: NumericCall = numeric(308, 268);
pub(crate) const SETRESGID: NumericCall = numeric(119, 149);
pub(crate) const SETRESUID: NumericCall = numeric(117, 147);
pub(crate) const SETSID: NumericCall = numeric(112, 157);
pub(crate) const UMASK: NumericCall = numeric(95, 166);
const EXIT_GROUP: NumericCall = numeric(231, 94);

/// Calls that take pointers.
pub(crate) const CAPSET: c_long = pick(126, 91);
pub(crate) const CHDIR: c_long = pick(80, 49);
pub(crate) const GET_ROBUST_LIST: c_long = pick(274, 100);
pub(crate) const PRCTL: c_long = pick(157, 167);
pub(crate) const RECVMSG: c_long = pick(47, 212);
pub(crate) const RSEQ: c_long = pick(334, 293);
pub(crate) const SECCOMP: c_long = pick(317, 277);
pub(crate) const SENDMSG: c_long = pick(46, 211);
pub(crate) const SETGROUPS: c_long = pick(116, 159);
pub(crate) const SET_ROBUST_LIST: c_long = pick(273, 99);
pub(crate) const WAIT4: c_long = pick(61, 260);
pub(crate) const WRITE: c_long = pick(1, 64);

pub(crate) const CLONE_NEWPID: c_long = 0x2000_0000;

/// An option of `prctl(2)` that takes one number, or none.
#[derive(Clone, Copy)]
pub(crate) struct NumericOption(c_long);

pub(crate) const PR_SET_DUMPABLE: NumericOption = NumericOption(4);
pub(crate) const PR_CAPBSET_DROP: NumericOption = NumericOption(24);
pub(crate) const PR_SET_SECUREBITS: NumericOption = NumericOption(28);
pub(crate) const PR_SET_NO_NEW_PRIVS: NumericOption = NumericOption(38);
pub(crate) const PR_CAP_AMBIENT: NumericOption = NumericOption(47);

impl NumericOption {
    /// Makes the call; arguments after the first are 0.
    pub(crate) fn set(self, value: c_long) -> c_long {
        const ZERO: c_long = 0;
        // SAFETY: the constants above, the only values of this type, are options that take no pointer.
        unsafe { syscall(PRCTL, self.0, value, ZERO, ZERO, ZERO) }
    }
}

/// The error number that the last call left.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library returns the address of this thread's error number, which is valid as long as the thread.
    let place = unsafe { __errno_location() };
    // SAFETY: as above; nothing else accesses it meanwhile.
    unsafe { *place }
}

/// Stores the error of a raw system call, which returns it as a negative number.
pub(crate) fn set_errno(result: c_long) {
    let number = c_int::try_from(-result).unwrap_or(0);
    // SAFETY: as in `errno`.
    let place = unsafe { __errno_location() };
    // SAFETY: as in `errno`.
    unsafe { *place = number };
}

/// Ends the process without any of the runtime's own clean-up.
pub(crate) fn exit(code: c_long) -> ! {
    loop {
        EXIT_GROUP.call(code, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_this_machine() {
        assert_eq!(GETPID.call(0, 0, 0), c_long::from(std::process::id()));
        assert_eq!(CLOSE.call(-1, 0, 0), -1);
        let ebadf = std::io::Error::last_os_error();
        assert_eq!(ebadf.raw_os_error(), Some(errno()));
        let before = UMASK.call(0o077, 0, 0);
        assert_eq!(UMASK.call(before, 0, 0), 0o077);
        assert_eq!(PR_SET_DUMPABLE.set(9), -1);
    }
}
