//! The system-call filter of the program: installing it, and answering the calls that it denies.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::sys::check_fd;

const SYS_SECCOMP: c_long = if cfg!(target_arch = "aarch64") { 277 } else { 317 };
const SECCOMP_SET_MODE_FILTER: c_long = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: c_long = 1 << 3;
const INSTRUCTION_BYTES: usize = 8;

/// The kernel's `struct sock_fprog`.
#[repr(C)]
struct FilterProgram {
    length: u16,
    instructions: *const c_void,
}

/// The kernel's `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    process: u32,
    flags: u32,
    syscall: i32,
    arch: u32,
    instruction_pointer: u64,
    arguments: [u64; 6],
}

/// The kernel's `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

unsafe extern "C" {
    fn ioctl(fd: c_int, request: c_ulong, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// A call that the filter denied. The caller is stopped in it until it is answered.
pub(crate) struct DeniedCall {
    pub(crate) id: u64,
    pub(crate) syscall: u32,
    pub(crate) arguments: [u64; 6],
}

/// The next denied call, if its caller still waits.
pub(crate) fn next_denied(listener: &OwnedFd) -> Option<DeniedCall> {
    const SECCOMP_IOCTL_NOTIF_RECV: c_ulong = 0xc050_2100;
    let mut call = Notification::default();
    // SAFETY: this request demands a zeroed seccomp_notif to write to; this is one, and it outlives the call.
    let result = unsafe { ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    let Notification { id, syscall, arguments, .. } = call;
    (result == 0).then_some(DeniedCall { id, syscall: syscall.cast_unsigned(), arguments })
}

/// Makes a denied call return an error.
pub(crate) fn refuse(listener: &OwnedFd, call: &DeniedCall, errno: i32) {
    const SECCOMP_IOCTL_NOTIF_SEND: c_ulong = 0xc018_2101;
    let response = Response { id: call.id, value: 0, error: errno.saturating_neg(), flags: 0 };
    // SAFETY: this request reads a seccomp_notif_resp; this is one, and it outlives the call. An error means that the
    // caller was killed.
    unsafe { ioctl(listener.as_raw_fd(), SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}

/// Installs a filter for this process, for good. Returns its listener if one is wanted.
pub(crate) fn install(instructions: &[u8], wants_listener: bool) -> io::Result<Option<OwnedFd>> {
    let flags = if wants_listener { SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    let length = instructions.len() / INSTRUCTION_BYTES;
    let length = u16::try_from(length).map_err(io::Error::other)?;
    let program = FilterProgram { length, instructions: instructions.as_ptr().cast() };
    // SAFETY: seccomp(2) reads a sock_fprog and so many instructions as its length says, which the slice has. The
    // kernel checks what they do.
    let result =
        unsafe { syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: with this flag the result is a descriptor that the kernel has just opened, close-on-exec.
    wants_listener.then(|| unsafe { check_fd(result) }).transpose()
}
