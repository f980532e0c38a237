//! Wrappers of system calls that belong to no other module.

use std::ffi::{c_int, c_short, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};

const PR_SET_DUMPABLE: c_int = 4;
const O_CLOEXEC: c_int = 0o2_000_000;
const O_NONBLOCK: c_int = 0o4000;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;

/// For [`poll`]: there is something to read.
pub(crate) const POLLIN: c_short = 1;
/// For [`poll`]: the other end of a socket is closed for writing.
pub(crate) const POLLRDHUP: c_short = 0x2000;
/// For [`poll`]: there is room to write.
pub(crate) const POLLOUT: c_short = 4;
pub(crate) const SIGKILL: c_int = 9;
const SIGCHLD: c_int = 17;

/// The kernel's `struct pollfd`.
#[repr(C)]
pub(crate) struct PollFd {
    /// A negative one is skipped.
    pub(crate) fd: c_int,
    pub(crate) events: c_short,
    pub(crate) revents: c_short,
}

/// The kernel's `struct timeval`.
#[repr(C)]
#[derive(Default)]
struct TimeVal {
    seconds: i64,
    micros: i64,
}

/// The kernel's `struct rusage`.
#[repr(C)]
#[derive(Default)]
struct RUsage {
    user: TimeVal,
    system: TimeVal,
    max_rss_kib: i64,
    rest: [i64; 13],
}

unsafe extern "C" {
    #[link_name = "poll"]
    fn c_poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    fn wait4(process: c_int, status: *mut c_int, options: c_int, usage: *mut RUsage) -> c_int;
    fn waitid(kind: c_int, id: c_int, information: *mut c_int, options: c_int) -> c_int;
    fn write(fd: c_int, bytes: *const u8, length: usize) -> isize;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn prctl(option: c_int, ...) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    #[link_name = "fork"]
    fn c_fork() -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    // These take numbers only and report every mistake as an error.
    #[link_name = "kill"]
    safe fn c_kill(process: c_int, signal: c_int) -> c_int;
}

/// A child that ended, and what it used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExitedChild {
    pub(crate) process: c_int,
    pub(crate) wait_status: c_int,
    pub(crate) user_micros: u64,
    pub(crate) system_micros: u64,
    pub(crate) max_rss_kib: u64,
}

/// Turns the result of a C function into one with the error that it left.
pub(crate) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes ownership of a descriptor that a system call returned, or the error that it left.
///
/// # Safety
///
/// `result` is the result of a call that opens a descriptor, which nothing else owns.
pub(crate) unsafe fn check_fd(result: i64) -> io::Result<OwnedFd> {
    let fd = check(c_int::try_from(result).map_err(io::Error::other)?)?;
    // SAFETY: from_raw_fd demands an open descriptor without another owner; the caller promises it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Keeps processes of the same user from tracing this one and from reading its memory.
pub(crate) fn set_undumpable() -> io::Result<()> {
    // SAFETY: PR_SET_DUMPABLE reads one number, which is passed with the width of a register.
    check(unsafe { prctl(PR_SET_DUMPABLE, 0 as c_ulong) }).map(drop)
}

/// Makes this process the parent of descendants that lose theirs.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    const PR_SET_CHILD_SUBREAPER: c_int = 36;
    // SAFETY: PR_SET_CHILD_SUBREAPER reads one number, which is passed with the width of a register.
    check(unsafe { prctl(PR_SET_CHILD_SUBREAPER, 1 as c_ulong) }).map(drop)
}

/// Duplicates this process and returns the child's ID, or 0 in the child.
pub(crate) fn fork() -> io::Result<c_int> {
    // SAFETY: fork(2) of a process with several threads would leave locks behind that nobody releases. The agent has
    // one thread, so its child may do what any process may.
    check(unsafe { c_fork() })
}

/// Replaces an open descriptor by a copy of another. The copy stays open across exec.
pub(crate) fn replace(old: &impl AsFd, new: &impl AsFd) -> io::Result<()> {
    // SAFETY: dup2(2) takes two open descriptors. The owner of the replaced one goes on to own the copy.
    check(unsafe { dup2(new.as_fd().as_raw_fd(), old.as_fd().as_raw_fd()) }).map(drop)
}

/// Children of this process, as far as none ends meanwhile.
pub(crate) fn children() -> io::Result<Vec<c_int>> {
    let text = std::fs::read_to_string("/proc/thread-self/children")?;
    text.split_ascii_whitespace().map(|id| id.parse().map_err(io::Error::other)).collect()
}

/// Two ends that were just opened.
fn own([first, second]: [c_int; 2]) -> (OwnedFd, OwnedFd) {
    // SAFETY: the callers pass descriptors that a successful call has just opened, so nothing else owns them.
    let first = unsafe { OwnedFd::from_raw_fd(first) };
    // SAFETY: as above.
    (first, unsafe { OwnedFd::from_raw_fd(second) })
}

fn open_pipe(flags: c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: pipe2(2) writes two descriptors; the array has room for two.
    check(unsafe { pipe2(ends.as_mut_ptr(), O_CLOEXEC | flags) })?;
    Ok(own(ends))
}

/// A pipe whose reading and writing end close on exec.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    open_pipe(0)
}

/// A pipe in packet mode: each write is read by one read.
pub(crate) fn packet_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    const F_SETPIPE_SZ: c_int = 1031;
    const PIPE_BYTES: c_int = 1 << 20;
    const O_DIRECT: c_int = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
    let (reader, writer) = open_pipe(O_DIRECT)?;
    // A write that waits for room is signalled twice, which blurs the order. Where the user may not have such a large
    // pipe, the order of a long burst is less exact.
    let _ = control(&reader, F_SETPIPE_SZ, PIPE_BYTES);
    Ok((reader, writer))
}

/// `fcntl(2)` with a command that takes a number, or nothing.
pub(crate) fn control(fd: &impl AsFd, command: c_int, argument: c_int) -> io::Result<c_int> {
    // SAFETY: the kernel reads the argument as a number. The commands of this crate that take one neither close the
    // descriptor nor read memory.
    check(unsafe { fcntl(fd.as_fd().as_raw_fd(), command, argument) })
}

/// Sets and clears status flags of an open file.
pub(crate) fn change_flags(fd: &impl AsFd, set: c_int, clear: c_int) -> io::Result<()> {
    let flags = control(fd, F_GETFL, 0)?;
    control(fd, F_SETFL, (flags | set) & !clear).map(drop)
}

/// Makes reads and writes return at once.
pub(crate) fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    change_flags(fd, O_NONBLOCK, 0)
}

/// Waits until a descriptor is ready.
pub(crate) fn poll(fds: &mut [PollFd]) -> io::Result<()> {
    const FOREVER: c_int = -1;
    // SAFETY: poll(2) reads and writes `len` entries, which is how many the slice has.
    match check(unsafe { c_poll(fds.as_mut_ptr(), fds.len() as c_ulong, FOREVER) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result.map(drop),
    }
}

/// Sends a signal. A process that is gone needs none.
pub(crate) fn kill(process: c_int, signal: c_int) {
    c_kill(process, signal);
}

/// Writes one byte, also from a signal handler. A pipe that is full wakes its reader anyway.
pub(crate) fn write_byte(fd: c_int) {
    let byte = 0_u8;
    // SAFETY: write(2) is async-signal-safe and reads one byte, which is alive.
    unsafe { write(fd, &raw const byte, 1) };
}

/// Installs the handler for SIGCHLD.
///
/// # Safety
///
/// The handler does only what is async-signal-safe.
pub(crate) unsafe fn handle_sigchld(handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY: signal(3) demands a function of this type, which is alive for ever; the caller promises the rest.
    check_signal(unsafe { signal(SIGCHLD, handler as usize) })
}

/// Has the kernel reap children. They inherit this, until they handle the signal.
pub(crate) fn ignore_sigchld() -> io::Result<()> {
    const SIG_IGN: usize = 1;
    // SAFETY: this value is no function, and replaces none that something relies on.
    check_signal(unsafe { signal(SIGCHLD, SIG_IGN) })
}

fn check_signal(before: usize) -> io::Result<()> {
    const SIG_ERR: usize = usize::MAX;
    if before == SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a child has ended. It is not reaped.
pub(crate) fn has_exited(process: c_int) -> bool {
    const P_PID: c_int = 1;
    const WNOHANG: c_int = 1;
    const WEXITED: c_int = 4;
    const WNOWAIT: c_int = 0x0100_0000;
    // The kernel's `siginfo_t` is 128 bytes; on 64-bit machines the process ID is the fifth number.
    const SIGINFO_PID: usize = 4;
    let mut siginfo = [0; 32];
    // SAFETY: waitid(2) writes at most a siginfo_t; the array is as large.
    let result =
        unsafe { waitid(P_PID, process, siginfo.as_mut_ptr(), WEXITED | WNOHANG | WNOWAIT) };
    result == 0 && siginfo[SIGINFO_PID] == process
}

/// Reaps a child: none if all are alive, an error if there are no children. Waits for one if `blocking`.
pub(crate) fn reap(blocking: bool) -> io::Result<Option<ExitedChild>> {
    const ANY: c_int = -1;
    const WNOHANG: c_int = 1;
    const WALL: c_int = 0x4000_0000;
    let (mut wait_status, mut usage) = (0, RUsage::default());
    let options = if blocking { WALL } else { WALL | WNOHANG };
    // SAFETY: wait4(2) writes a status and a `struct rusage`, which both outlive the call.
    let waited = unsafe { wait4(ANY, &raw mut wait_status, options, &raw mut usage) };
    let process = match check(waited) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
        result => result?,
    };
    let micros = |time: &TimeVal| {
        time.seconds.unsigned_abs().saturating_mul(1_000_000) + time.micros.unsigned_abs()
    };
    Ok((process != 0).then_some(ExitedChild {
        process,
        wait_status,
        user_micros: micros(&usage.user),
        system_micros: micros(&usage.system),
        max_rss_kib: usage.max_rss_kib.unsigned_abs(),
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::process::Command;

    use super::*;

    const ECHILD: i32 = 10;

    /// Runs a test in a process of its own with one thread, as the agent has.
    pub(crate) fn in_child(test: fn()) {
        unsafe extern "C" {
            fn fork() -> c_int;
            fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
            safe fn _exit(code: c_int) -> !;
        }
        // SAFETY: the C library makes its own state usable in a child; another thread of a test program that is in the
        // middle of something else holds nothing that these tests use.
        let process = check(unsafe { fork() }).unwrap();
        if process == 0 {
            _exit(i32::from(std::panic::catch_unwind(test).is_err()));
        }
        let mut status = -1;
        // SAFETY: waitpid(2) writes a status, which outlives the call.
        let waited = unsafe { waitpid(process, &raw mut status, 0) };
        assert_eq!((waited, status), (process, 0));
    }

    #[test]
    fn packets_are_read_one_by_one() {
        let Ok((reader, writer)) = packet_pipe() else { return }; // Not on every kernel.
        let (mut reader, mut writer) = (File::from(reader), File::from(writer));
        writer.write_all(b"one").unwrap();
        writer.write_all(b"two").unwrap();
        let mut bytes = [0; 16];
        assert_eq!(reader.read(&mut bytes).unwrap(), 3);
        assert_eq!(&bytes[..3], b"one");
        assert_eq!(reader.read(&mut bytes).unwrap(), 3);
    }

    #[test]
    fn poll_tells_which_descriptor_is_ready() {
        let (silent, _writer) = pipe().unwrap();
        let (ready, writer) = pipe().unwrap();
        write_byte(writer.as_raw_fd());
        let entry = |fd| PollFd { fd, events: POLLIN, revents: 0 };
        let mut fds = [entry(silent.as_raw_fd()), entry(ready.as_raw_fd()), entry(-1)];
        poll(&mut fds).unwrap();
        assert_eq!(fds.map(|fd| fd.revents), [0, POLLIN, 0]);
    }

    #[test]
    fn a_read_of_an_empty_pipe_returns_at_once() {
        let (reader, _writer) = pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        let error = File::from(reader).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    /// The one test that reaps: each test has a process of its own only under nextest.
    #[test]
    #[allow(clippy::zombie_processes, reason = "reaping is what is tested")]
    fn a_child_is_seen_before_it_is_reaped_and_its_usage_is_known() {
        let (gate, open) = pipe().unwrap();
        let child = Command::new("sh").args(["-c", "read line; exit 7"]).stdin(gate).spawn();
        let process = child.expect("every host has a shell").id().cast_signed();
        assert!(!has_exited(process));
        drop(open);
        let exited = loop {
            if has_exited(process) {
                break reap(true).unwrap().unwrap();
            }
            std::thread::yield_now();
        };
        assert_eq!((exited.process, exited.wait_status), (process, 7 << 8));
        assert!(exited.max_rss_kib > 0);
        assert!(!has_exited(process));
        let error = reap(false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ECHILD));
    }
}
