//! The system calls of the agent, which has no library but the standard one.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_short, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::landlock::Rules;
use crate::user::User;

const PR_SET_DUMPABLE: c_int = 4;
const PR_SET_NO_NEW_PRIVS: c_int = 38;
const SYS_SECCOMP: c_long = if cfg!(target_arch = "aarch64") { 277 } else { 317 };
const SYS_CLOSE_RANGE: c_long = 436;
const SECCOMP_SET_MODE_FILTER: c_int = 1;
const O_CLOEXEC: c_int = 0o2_000_000;
const O_NONBLOCK: c_int = 0o4000;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const SIG_DFL: usize = 0;
const SIG_SETMASK: c_int = 2;

/// For [`poll`]: there is something to read.
pub const POLLIN: c_short = 1;
/// For [`poll`]: there is room to write.
pub const POLLOUT: c_short = 4;
/// The signal that nobody survives.
pub const SIGKILL: c_int = 9;

/// What [`poll`] is asked, and its answer.
#[repr(C)]
pub struct PollFd {
    pub descriptor: c_int,
    pub events: c_short,
    pub found: c_short,
}

#[repr(C)]
struct TimeVal {
    seconds: c_long,
    micros: c_long,
}

/// What processes have used.
#[repr(C)]
struct RUsage {
    user: TimeVal,
    system: TimeVal,
    largest: c_long,
    rest: [c_long; 13],
}

#[repr(C)]
struct RLimit {
    soft: c_ulong,
    hard: c_ulong,
}

#[repr(C)]
struct FilterProgram {
    length: u16,
    instructions: *const c_void,
}

/// A call that the filter stopped.
pub struct DeniedCall {
    id: u64,
    pub number: i32,
    pub arguments: [u64; 6],
}

/// As the kernel writes it.
#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    process: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// As the kernel reads it.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct IoVec {
    base: *mut c_void,
    length: usize,
}

#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_length: u32,
    vectors: *mut IoVec,
    vector_count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// A control message with one descriptor, as large as the kernel wants it.
#[repr(C, align(8))]
#[derive(Default)]
struct Rights {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
    padding: c_int,
}

const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
const RIGHTS_LENGTH: usize = 20;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;

unsafe extern "C" {
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    fn sendmsg(socket: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn recvmsg(socket: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
    fn ioctl(descriptor: c_int, request: c_ulong, ...) -> c_int;
    fn fork() -> c_int;
    fn setsid() -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, env: *const *const c_char) -> c_int;
    fn wait4(process: c_int, status: *mut c_int, options: c_int, usage: *mut RUsage) -> c_int;
    fn waitid(kind: c_int, id: c_int, information: *mut c_void, options: c_int) -> c_int;
    fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
    fn getrlimit(resource: c_int, limit: *mut RLimit) -> c_int;
    fn setrlimit(resource: c_int, limit: *const RLimit) -> c_int;
    #[link_name = "poll"]
    fn poll_of_c(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
    #[link_name = "kill"]
    fn kill_of_c(process: c_int, signal: c_int) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, argument: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn _exit(code: c_int) -> !;
    fn signal(signal: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int;
}

/// How a process ended and what it used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gone {
    pub process: c_int,
    pub status: c_int,
    pub user_micros: u64,
    pub system_micros: u64,
    pub largest_kib: u64,
}

/// What becomes the program.
pub struct Program {
    pub path: CString,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub directory: CString,
    pub rlimits: Vec<(u64, u64)>,
    /// The system-call filter, as the kernel takes it; empty for none.
    pub filter: Vec<u8>,
    /// Whether somebody is to be asked how denied calls are answered.
    pub has_listener: bool,
    pub user: User,
    pub rules: Option<Rules>,
}

/// Two ends of a socket that keeps messages apart, both of which close on exec.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    const AF_UNIX: c_int = 1;
    const SOCK_SEQPACKET: c_int = 5;
    let mut ends = [0; 2];
    // SAFETY: socketpair(2) writes two descriptors to where this points, which has room for two.
    check(unsafe { socketpair(AF_UNIX, SOCK_SEQPACKET | O_CLOEXEC, 0, ends.as_mut_ptr()) })?;
    // SAFETY: both were just opened and are nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Receives a message and the descriptor that came with it; an empty one at the end.
pub fn receive(socket: &OwnedFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut text = vec![0_u8; 256];
    let mut rights = Rights::default();
    let mut vector = IoVec { base: text.as_mut_ptr().cast(), length: text.len() };
    let mut header = message(&mut vector, &mut rights);
    // SAFETY: the header points to a vector and a control message that outlive the call, with their lengths.
    let count = unsafe { recvmsg(socket.as_raw_fd(), &raw mut header, MSG_CMSG_CLOEXEC) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    text.truncate(count);
    let came = header.control_length >= RIGHTS_LENGTH && rights.kind == SCM_RIGHTS;
    // SAFETY: the kernel has just opened it for this process.
    let descriptor = came.then(|| unsafe { OwnedFd::from_raw_fd(rights.descriptor) });
    Ok((text, descriptor))
}

fn message(vector: &mut IoVec, rights: &mut Rights) -> MessageHeader {
    MessageHeader {
        name: std::ptr::null_mut(),
        name_length: 0,
        vectors: vector,
        vector_count: 1,
        control: std::ptr::from_mut(rights).cast(),
        control_length: size_of::<Rights>(),
        flags: 0,
    }
}

/// Sends a descriptor, with a byte that says nothing.
fn send_descriptor(socket: c_int, descriptor: c_int) -> bool {
    let mut byte = 0_u8;
    let mut vector = IoVec { base: (&raw mut byte).cast(), length: 1 };
    let mut rights = Rights {
        length: RIGHTS_LENGTH,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        descriptor,
        padding: 0,
    };
    let header = message(&mut vector, &mut rights);
    // SAFETY: the header points to a vector and a control message that outlive the call, with their lengths.
    unsafe { sendmsg(socket, &raw const header, 0) == 1 }
}

/// The next call that the filter stopped, if somebody still waits for its answer.
pub fn next_denied(listener: &OwnedFd) -> Option<DeniedCall> {
    const RECEIVE: c_ulong = 0xc050_2100;
    let mut call = Notification::default();
    // SAFETY: this request writes a notification to where this points, which is one, and zero before.
    let result = unsafe { ioctl(listener.as_raw_fd(), RECEIVE, &raw mut call) };
    let Notification { id, number, arguments, .. } = call;
    (result == 0).then_some(DeniedCall { id, number, arguments })
}

/// Answers a call with an error.
pub fn refuse(listener: &OwnedFd, call: &DeniedCall, errno: i32) {
    const SEND: c_ulong = 0xc018_2101;
    let response = Response { id: call.id, value: 0, error: -errno, flags: 0 };
    // SAFETY: this request reads a response from where this points, which is one.
    let _ = unsafe { ioctl(listener.as_raw_fd(), SEND, &raw const response) };
}

pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Nobody of the same user may look into this process.
pub fn hide_memory() -> io::Result<()> {
    // SAFETY: this option takes a number.
    check(unsafe { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

/// A pipe, both ends of which close on exec: the reading and the writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: pipe2(2) writes two descriptors to where this points, which has room for two.
    check(unsafe { pipe2(ends.as_mut_ptr(), O_CLOEXEC) })?;
    // SAFETY: both were just opened and are nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// The same in packet mode: what was written at once is read at once.
pub fn packet_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    const F_SETPIPE_SZ: c_int = 1031;
    const O_DIRECT: c_int = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
    let mut ends = [0; 2];
    // SAFETY: pipe2(2) writes two descriptors to where this points, which has room for two.
    check(unsafe { pipe2(ends.as_mut_ptr(), O_CLOEXEC | O_DIRECT) })?;
    // A write that has to wait for room is announced twice, which blurs the order. Where a user may not have so much,
    // the order of a long burst is less exact.
    // SAFETY: this command takes a number.
    unsafe { fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) };
    // SAFETY: both were just opened and are nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A real-time signal, of which each one queues, and the one that comes when the queue is full.
const WRITE_SIGNAL: c_int = 36;
const SIGIO: c_int = 29;

/// The kernel's set of the two signals.
fn write_signals() -> u64 {
    (1 << (WRITE_SIGNAL - 1)) | (1 << (SIGIO - 1))
}

/// A descriptor that tells, in order, which of these pipes was written to.
pub fn listen_to_writes(readers: [&OwnedFd; 2]) -> io::Result<OwnedFd> {
    const SIG_BLOCK: c_int = 0;
    const SYS_SIGNALFD4: c_long = if cfg!(target_arch = "aarch64") { 74 } else { 289 };
    const F_SETSIG: c_int = 10;
    const F_SETOWN: c_int = 8;
    const O_ASYNC: c_int = 0o20_000;
    let mut set = [0_u64; 16];
    set[0] = write_signals();
    // SAFETY: the set is as large as the library's, and outlives the call.
    check(unsafe { sigprocmask(SIG_BLOCK, set.as_ptr().cast(), std::ptr::null_mut()) })?;
    // SAFETY: signalfd4(2) reads eight bytes of a set from where this points.
    let queue =
        unsafe { syscall(SYS_SIGNALFD4, -1, set.as_ptr(), 8_usize, O_CLOEXEC | O_NONBLOCK) };
    let queue = check(c_int::try_from(queue).map_err(io::Error::other)?)?;
    // SAFETY: it was just opened and is nobody else's.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    for reader in readers {
        let reader = reader.as_raw_fd();
        let own = c_int::try_from(std::process::id()).map_err(io::Error::other)?;
        for (command, argument) in [(F_SETOWN, own), (F_SETSIG, WRITE_SIGNAL)] {
            // SAFETY: these commands take numbers.
            check(unsafe { fcntl(reader, command, argument) })?;
        }
        // SAFETY: these commands take and return flags.
        let flags = check(unsafe { fcntl(reader, F_GETFL, 0) })?;
        // SAFETY: as above.
        check(unsafe { fcntl(reader, F_SETFL, flags | O_ASYNC) })?;
    }
    Ok(queue)
}

/// From now on a pipe is like any other.
pub fn let_go(reader: &impl AsRawFd) {
    const O_ASYNC: c_int = 0o20_000;
    let reader = reader.as_raw_fd();
    // SAFETY: these commands take and return flags.
    unsafe {
        let flags = fcntl(reader, F_GETFL, 0);
        fcntl(reader, F_SETFL, flags & !O_ASYNC);
    }
}

/// Which pipes were written to, in order; -1 for one that nobody knows.
pub fn written(queue: &OwnedFd) -> Vec<c_int> {
    const SIZE: usize = 128;
    const FD: usize = 20;
    const SYS_READ: c_long = if cfg!(target_arch = "aarch64") { 63 } else { 0 };
    let mut records = [0_u8; SIZE * 64];
    // SAFETY: read(2) writes at most as many bytes as it is told there is room for.
    let count =
        unsafe { syscall(SYS_READ, queue.as_raw_fd(), records.as_mut_ptr(), records.len()) };
    let count = usize::try_from(count).unwrap_or(0);
    let number = |record: &[u8], place: usize| {
        record[place..place + 4].try_into().map_or(-1, c_int::from_ne_bytes)
    };
    let records = records[..count].chunks_exact(SIZE);
    records.map(|record| if number(record, 0) == SIGIO { -1 } else { number(record, FD) }).collect()
}

/// Reading and writing return at once.
pub fn do_not_block(descriptor: &impl AsRawFd) -> io::Result<()> {
    let descriptor = descriptor.as_raw_fd();
    // SAFETY: these commands take and return flags.
    let flags = check(unsafe { fcntl(descriptor, F_GETFL, 0) })?;
    // SAFETY: as above.
    check(unsafe { fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }).map(drop)
}

/// Waits until one of them is ready, for so many milliseconds, for ever if that is negative.
pub fn poll(fds: &mut [PollFd], timeout: c_int) -> io::Result<()> {
    // SAFETY: poll(2) reads and writes as many entries as it is told there are.
    match check(unsafe { poll_of_c(fds.as_mut_ptr(), fds.len() as c_ulong, timeout) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result.map(drop),
    }
}

/// Sends a signal; a process that is gone needs none.
pub fn kill(process: c_int, signal: c_int) {
    // SAFETY: kill(2) takes two numbers.
    let _ = unsafe { kill_of_c(process, signal) };
}

/// Writes one byte, from a signal's handler too; a pipe that is full needs no more.
pub fn write_byte(descriptor: c_int) {
    let byte = 0_u8;
    // SAFETY: write(2) may be called by a handler, and reads one byte from where this points.
    unsafe { syscall(SYS_WRITE, descriptor, &raw const byte, 1_usize) };
}

/// Has a function called whenever a child ends.
pub fn on_child(handler: extern "C" fn(c_int)) -> io::Result<()> {
    const SIGCHLD: c_int = 17;
    const SIG_ERR: usize = usize::MAX;
    // SAFETY: the handler does only what a handler may.
    let before = unsafe { signal(SIGCHLD, handler as usize) };
    if before == SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a child has ended, without waiting for it: what is known of it stays known. Its status is that of
/// `wait4`, which is asked later; here it only stands for an end.
pub fn peek(process: c_int) -> Option<c_int> {
    const P_PID: c_int = 1;
    const WNOHANG: c_int = 1;
    const WEXITED: c_int = 4;
    const WNOWAIT: c_int = 0x0100_0000;
    // As large as a siginfo_t; its process id is at the same place on all 64-bit machines.
    let mut information = [0_i32; 32];
    // SAFETY: waitid(2) writes at most a siginfo_t to where this points, which has room for one.
    let result = unsafe {
        waitid(P_PID, process, information.as_mut_ptr().cast(), WEXITED | WNOHANG | WNOWAIT)
    };
    (result == 0 && information[4] == process).then_some(0)
}

/// A child that has ended; none if all live, an error if there are none. Waits for one if asked to.
pub fn reap(waits: bool) -> io::Result<Option<Gone>> {
    const WNOHANG: c_int = 1;
    const WALL: c_int = 0x4000_0000;
    let mut status = 0;
    let zero = || TimeVal { seconds: 0, micros: 0 };
    let mut usage = RUsage { user: zero(), system: zero(), largest: 0, rest: [0; 13] };
    let options = if waits { WALL } else { WALL | WNOHANG };
    // SAFETY: wait4(2) writes a status and a usage to where these point, and both outlive the call.
    let process = match check(unsafe { wait4(-1, &raw mut status, options, &raw mut usage) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
        result => result?,
    };
    let micros = |time: &TimeVal| (time.seconds * 1_000_000 + time.micros).unsigned_abs();
    Ok((process != 0).then_some(Gone {
        process,
        status,
        user_micros: micros(&usage.user),
        system_micros: micros(&usage.system),
        largest_kib: usage.largest.unsigned_abs(),
    }))
}

/// Starts the program with these three streams. What goes wrong between is written to `complaint`, a step and an
/// error number, and the pipe closes without a word when the program has begun.
pub fn start(program: &Program, streams: [&OwnedFd; 3], complaint: &OwnedFd) -> io::Result<c_int> {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(&program.argv), pointers(&program.env));
    // SAFETY: the agent has one thread, so the child may do what any process may.
    let process = check(unsafe { fork() })?;
    if process == 0 {
        let (step, error) = become_program(program, streams, complaint, &argv, &env);
        let number = error.raw_os_error().unwrap_or(0).unsigned_abs();
        let mut text = number.to_le_bytes().to_vec();
        text.extend_from_slice(step.as_bytes());
        // SAFETY: the text outlives the calls; leaving without cleaning up is what a copy should do.
        unsafe {
            syscall(SYS_WRITE, complaint.as_raw_fd(), text.as_ptr(), text.len());
            _exit(127)
        }
    }
    Ok(process)
}

const SYS_WRITE: c_long = if cfg!(target_arch = "aarch64") { 64 } else { 1 };

fn become_program(
    program: &Program,
    streams: [&OwnedFd; 3],
    supervisor: &OwnedFd,
    argv: &[*const c_char],
    env: &[*const c_char],
) -> (&'static str, io::Error) {
    let done = || -> Result<(), &'static str> {
        let ok = |result: c_int, step| if result < 0 { Err(step) } else { Ok(()) };
        // SAFETY: each takes numbers only, or a pointer to what outlives the call.
        unsafe {
            ok(setsid(), "begin a session")?;
            for number in 1..=64 {
                signal(number, SIG_DFL);
            }
            let nothing = [0_u64; 16];
            ok(
                sigprocmask(SIG_SETMASK, nothing.as_ptr().cast(), std::ptr::null_mut()),
                "unblock signals",
            )?;
            for (target, stream) in (0..).zip(streams) {
                ok(dup2(stream.as_raw_fd(), target), "set up a stream")?;
            }
            // All others close on exec; a kernel without this call keeps to that.
            syscall(SYS_CLOSE_RANGE, 3_u32, u32::MAX, 4_u32);
        }
        program.user.become_program().map_err(|_| "become the program's user")?;
        enter(&program.directory).map_err(|_| "enter the directory")?;
        for (kind, value) in &program.rlimits {
            let mut limit = RLimit { soft: 0, hard: 0 };
            // SAFETY: getrlimit(2) writes a limit to where this points.
            ok(unsafe { getrlimit(*kind as c_int, &raw mut limit) }, "ask for a resource limit")?;
            // A container may have less already, and nothing is raised. Not every kernel takes a limit that it has.
            let value = limit.hard.min(*value);
            if limit.soft == value && limit.hard == value {
                continue;
            }
            let limit = RLimit { soft: value, hard: value };
            // SAFETY: setrlimit(2) reads a limit from where this points.
            ok(unsafe { setrlimit(*kind as c_int, &raw const limit) }, "set a resource limit")?;
        }
        // SAFETY: this option takes numbers.
        ok(unsafe { prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, "give up new privileges")?;
        if let Some(rules) = &program.rules {
            rules.restrict().map_err(|_| "apply the Landlock rules")?;
        }
        let listens = program.has_listener.then_some(supervisor);
        filter(&program.filter, listens).map_err(|_| "install the system-call filter")
    };
    if let Err(step) = done() {
        return (step, io::Error::last_os_error());
    }
    // SAFETY: the path and both lists end as execve(2) wants them to, and outlive the call.
    unsafe { execve(program.path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    ("start the program", io::Error::last_os_error())
}

fn enter(directory: &CStr) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    std::env::set_current_dir(std::ffi::OsStr::from_bytes(directory.to_bytes()))
}

/// Installs the filter, and gives its listener away, if it has one.
fn filter(instructions: &[u8], supervisor: Option<&OwnedFd>) -> io::Result<()> {
    const NEW_LISTENER: u32 = 1 << 3;
    if instructions.is_empty() {
        return Ok(());
    }
    let flags = if supervisor.is_some() { NEW_LISTENER } else { 0 };
    let length = u16::try_from(instructions.len() / 8).map_err(io::Error::other)?;
    let program = FilterProgram { length, instructions: instructions.as_ptr().cast() };
    // SAFETY: seccomp(2) reads a program of so many instructions of eight bytes, and this is one.
    let listener =
        unsafe { syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    let listener = check(c_int::try_from(listener).map_err(io::Error::other)?)?;
    // It closes on exec, as the kernel makes it.
    match supervisor {
        Some(supervisor) if !send_descriptor(supervisor.as_raw_fd(), listener) => {
            Err(io::Error::last_os_error())
        }
        _ => Ok(()),
    }
}
