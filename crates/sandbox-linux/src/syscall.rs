//! System calls that rustix does not wrap, each with its safety note. Nothing here allocates, so all
//! of it may be called between clone and exec.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, RawPid};

/// Namespaces and other properties of a new process (`CLONE_*`).
pub(crate) type CloneFlags = u64;

pub(crate) const NEW_MOUNT: CloneFlags = libc::CLONE_NEWNS as CloneFlags;
pub(crate) const NEW_PID: CloneFlags = libc::CLONE_NEWPID as CloneFlags;
pub(crate) const NEW_IPC: CloneFlags = libc::CLONE_NEWIPC as CloneFlags;
pub(crate) const NEW_UTS: CloneFlags = libc::CLONE_NEWUTS as CloneFlags;
pub(crate) const NEW_NET: CloneFlags = libc::CLONE_NEWNET as CloneFlags;
pub(crate) const NEW_USER: CloneFlags = libc::CLONE_NEWUSER as CloneFlags;
pub(crate) const NEW_CGROUP: CloneFlags = libc::CLONE_NEWCGROUP as CloneFlags;
pub(crate) const NEW_TIME: CloneFlags = 0x80;
/// A root and a working directory that other threads do not share.
pub(crate) const OWN_DIRECTORY: CloneFlags = libc::CLONE_FS as CloneFlags;
/// Wider than the type of libc's constants.
const CLONE_INTO_CGROUP: CloneFlags = 0x2_0000_0000;

/// The kernel's `struct clone_args`, as far as it is used here (`CLONE_ARGS_SIZE_VER2`).
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Which of the two processes is running after [`clone_process`].
pub(crate) enum Cloned {
    /// The child.
    Child,
    /// The parent, with the child's PID and a pidfd.
    Parent(Pid, OwnedFd),
}

/// Forks with new namespaces, and into a cgroup v2 directory if one is given.
///
/// # Safety
/// The calling process must have one thread only, or the child must take no lock, which is to say only make system
/// calls: it is a copy in which no other thread would ever release a lock it held. The launcher and its descendants
/// are built that way.
pub(crate) unsafe fn clone_process(
    flags: CloneFlags,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    let mut args = CloneArgs {
        flags: flags | libc::CLONE_PIDFD as u64,
        pidfd: &raw mut pidfd as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd().unsigned_abs().into();
    }
    // SAFETY: clone3 demands a valid clone_args of the given size, whose pidfd points to writable
    // memory; both live on this stack frame. Without CLONE_VM the child gets a copy of the memory, and
    // the caller promises that no other thread exists.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match result {
        -1 => Err(last_errno()),
        0 => Ok(Cloned::Child),
        pid => {
            let pid = RawPid::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::OVERFLOW)?;
            // SAFETY: clone3 succeeded with CLONE_PIDFD, so the kernel stored a descriptor there that
            // nothing else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent(pid, pidfd))
        }
    }
}

/// Exits immediately: no destructors, no exit handlers, which belong to the parent process.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any value and does not return; skipping destructors is what is wanted.
    unsafe { libc::_exit(code) }
}

/// Moves this process into new namespaces of the kinds given.
pub(crate) fn unshare(flags: CloneFlags) -> Result<(), Errno> {
    let flags = i32::try_from(flags).map_err(|_| Errno::INVAL)?;
    // SAFETY: unshare takes flags only. Descriptor tables and file-system state are not among the
    // flags used here, so nothing Rust relies on changes.
    check(unsafe { libc::unshare(flags) }.into())
}

/// Sets close-on-exec for every descriptor from `first` on.
pub(crate) fn close_on_exec_from(first: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;
    let first = u32::try_from(first).map_err(|_| Errno::INVAL)?;
    // SAFETY: close_range takes numbers only; setting a flag closes nothing that Rust owns.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOSE_RANGE_CLOEXEC) })
}

/// Sets close-on-exec for every descriptor but the standard ones: for a process that starts a
/// long-lived one, which must not keep open what the caller passed on.
pub fn close_others_on_exec() -> std::io::Result<()> {
    Ok(close_on_exec_from(3)?)
}

/// Closes every descriptor but these. For a forked process that never runs the destructors of its
/// parent's values.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut numbers: Vec<u32> =
        kept.iter().filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok()).collect();
    numbers.extend([0, 1, 2]);
    numbers.sort_unstable();
    numbers.dedup();
    let mut first = 0;
    for number in numbers.into_iter().chain([u32::MAX]) {
        if let Some(last) = number.checked_sub(1).filter(|last| *last >= first) {
            // SAFETY: close_range takes numbers only. What it closes belongs to the process this one
            // was copied from; no owner of it runs here any more, as the caller promises by its use.
            check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
        }
        first = number.saturating_add(1);
    }
    Ok(())
}

/// Gives this process an empty session keyring of its own.
pub(crate) fn join_new_session_keyring() -> Result<(), Errno> {
    const KEYCTL_JOIN_SESSION_KEYRING: i32 = 1;
    // SAFETY: with a null name keyctl makes an anonymous keyring and reads no memory.
    let result = unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<u8>())
    };
    check(result)
}

/// Attributes that [`change_mount`] sets and clears.
#[repr(C)]
#[derive(Default)]
pub(crate) struct MountAttributes {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
    pub(crate) user_namespace: u64,
}

pub(crate) const MOUNT_READ_ONLY: u64 = 0x1;
pub(crate) const MOUNT_NO_SUID: u64 = 0x2;
pub(crate) const MOUNT_NO_DEV: u64 = 0x4;
pub(crate) const MOUNT_ID_MAPPED: u64 = 0x0010_0000;

/// Changes a mount, and with `recursive` all below it, atomically.
pub(crate) fn change_mount(
    mount: BorrowedFd<'_>,
    attributes: &MountAttributes,
    recursive: bool,
) -> Result<(), Errno> {
    let mut flags = libc::AT_EMPTY_PATH;
    if recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: mount_setattr demands a terminated path (empty, with AT_EMPTY_PATH) and a mount_attr of
    // the size given; the struct has the kernel's layout (MOUNT_ATTR_SIZE_VER0).
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    })
}

/// Makes `new_root` the root of this mount namespace and puts the old one at `put_old`.
pub(crate) fn pivot_root(new_root: &CStr, put_old: &CStr) -> Result<(), Errno> {
    // SAFETY: pivot_root demands two terminated paths.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, new_root.as_ptr(), put_old.as_ptr()) })
}

/// Executes a program. Returns only on failure.
pub(crate) fn execute(program: &CStr, argv: &CArray, envp: &CArray) -> Errno {
    // SAFETY: execve demands a terminated path and two null-terminated arrays of terminated strings;
    // CArray is built as one and keeps its strings alive.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    last_errno()
}

/// Strings in the form that exec takes, built before the clone so that nothing allocates after it.
pub(crate) struct CArray {
    pointers: Vec<*const libc::c_char>,
    _strings: Vec<std::ffi::CString>,
}

impl CArray {
    pub(crate) fn new(strings: Vec<std::ffi::CString>) -> Self {
        let mut pointers: Vec<_> = strings.iter().map(|string| string.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // Moving the vector of strings does not move the bytes they point to.
        Self { pointers, _strings: strings }
    }

    fn as_ptr(&self) -> *const *const libc::c_char {
        self.pointers.as_ptr()
    }
}

/// A signal that init handles and programs never get: kill everything and report.
pub(crate) fn end_everything_signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Sends a signal through a pidfd.
pub(crate) fn signal_process(pidfd: BorrowedFd<'_>, signal: i32) -> Result<(), Errno> {
    // SAFETY: pidfd_send_signal demands a process descriptor; a null siginfo means the default one.
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    })
}

/// Blocks every signal of this thread, so that [`next_signal`] can receive them.
pub(crate) fn block_all_signals() -> Result<libc::sigset_t, Errno> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes the whole set it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the call above initialised it.
    let all = unsafe { all.assume_init() };
    set_signal_mask(&all)?;
    Ok(all)
}

/// Unblocks every signal; a program must not start with signals blocked.
pub(crate) fn unblock_all_signals() -> Result<(), Errno> {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset writes the whole set it is given.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the call above initialised it.
    let none = unsafe { none.assume_init() };
    set_signal_mask(&none)
}

fn set_signal_mask(set: &libc::sigset_t) -> Result<(), Errno> {
    // SAFETY: sigprocmask demands a valid set and allows a null pointer for the old one.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) }.into())
}

/// Resets every signal to its default: exec resets all dispositions except "ignore", which is
/// inherited. The C library reserves two signals and would refuse them.
pub(crate) fn reset_signal_actions() {
    /// The kernel's `struct sigaction`: handler, flags, restorer, mask. All zero is the default.
    const DEFAULT: [u64; 4] = [0; 4];
    const MASK_SIZE: usize = 8;
    for signal in 1..=64 {
        // SAFETY: rt_sigaction demands a sigaction of the kernel's layout and the size of its mask, and
        // allows no place for the old one. It fails for SIGKILL and SIGSTOP, which need no reset.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                DEFAULT.as_ptr(),
                std::ptr::null_mut::<u64>(),
                MASK_SIZE,
            )
        };
    }
}

/// Waits for the next of the blocked signals.
pub(crate) fn next_signal(set: &libc::sigset_t) -> i32 {
    loop {
        // SAFETY: sigwaitinfo demands a valid set and allows a null pointer for the information.
        let signal = unsafe { libc::sigwaitinfo(set, std::ptr::null_mut()) };
        if signal > 0 {
            return signal;
        }
    }
}

/// Waits for the next of the blocked signals, at most this long.
pub(crate) fn next_signal_within(set: &libc::sigset_t, timeout: Duration) -> Option<i32> {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: sigtimedwait demands a valid set and a valid time, and allows a null pointer for the
    // information.
    let signal = unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &raw const timeout) };
    (signal > 0).then_some(signal)
}

/// A signalfd for these signals, which must be blocked.
pub(crate) fn signal_descriptor(set: &libc::sigset_t) -> Result<OwnedFd, Errno> {
    // SAFETY: signalfd demands a valid set; -1 makes a new descriptor.
    let descriptor = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if descriptor == -1 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    // SAFETY: the descriptor is new and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// CPU time that a process has used so far, in microseconds.
pub(crate) fn cpu_micros_of(process: Pid) -> u64 {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: clock_getcpuclockid demands a place for a clock's id.
    if unsafe { libc::clock_getcpuclockid(process.as_raw_nonzero().get(), &raw mut clock) } != 0 {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime demands a place for a time; a clock that is gone makes it fail.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

/// CPU time in user and system mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// Microseconds in user mode.
    pub user_micros: u64,
    /// Microseconds in the kernel.
    pub system_micros: u64,
    /// Maximum resident size of one process, in KiB.
    pub max_rss_kib: u64,
}

/// Whose CPU time [`cpu_times`] returns.
#[derive(Clone, Copy)]
pub(crate) enum UsageOf {
    /// This process.
    Process,
    /// All reaped children, and theirs.
    Children,
}

/// CPU time and memory of this process, or of its reaped children.
pub(crate) fn cpu_times(of: UsageOf) -> CpuTimes {
    let who = match of {
        UsageOf::Process => libc::RUSAGE_SELF,
        UsageOf::Children => libc::RUSAGE_CHILDREN,
    };
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage demands writable memory for one rusage; it cannot fail for these two.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: all-zero is a valid rusage, and the call above filled it.
    let usage = unsafe { usage.assume_init() };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    CpuTimes {
        user_micros: micros(usage.ru_utime),
        system_micros: micros(usage.ru_stime),
        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }
}

/// A number that a child stores for its parent, whether it shares memory or not.
pub(crate) struct SharedNumber(std::ptr::NonNull<std::sync::atomic::AtomicU64>);

impl SharedNumber {
    /// Creates it, with value zero.
    pub(crate) fn new() -> Result<Self, Errno> {
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no other one.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<u64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(last_errno());
        }
        std::ptr::NonNull::new(page.cast()).map(Self).ok_or(Errno::NOMEM)
    }

    /// The number; the same in this process and in the child.
    pub(crate) fn get(&self) -> &std::sync::atomic::AtomicU64 {
        // SAFETY: the mapping is aligned to a page, zeroed, as long as a number, and never unmapped: both
        // processes end with it. Atomics may be shared between processes.
        unsafe { self.0.as_ref() }
    }
}

/// A stack for a child that shares this process's memory.
pub(crate) struct ChildStack {
    bottom: *mut libc::c_void,
}

/// Enough for the confinement sequence.
const STACK_SIZE: usize = 256 * 1024;

impl ChildStack {
    pub(crate) fn new() -> Result<Self, Errno> {
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no other one.
        let bottom = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                STACK_SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if bottom == libc::MAP_FAILED { Err(last_errno()) } else { Ok(Self { bottom }) }
    }

    /// Clones a child that runs `work` in this process's memory, on this stack, and waits until it
    /// has executed a program or exited. Copying memory, and the page faults after it, are most of
    /// the cost of a plain fork.
    ///
    /// # Safety
    /// The process must have one thread. `work` must not return: it ends in exec or exit.
    pub(crate) unsafe fn clone_sharing_memory(&self, work: &mut dyn FnMut()) -> Result<Pid, Errno> {
        extern "C" fn begin(work: *mut libc::c_void) -> libc::c_int {
            // SAFETY: this is the pointer passed below. The parent is stopped until the child is done,
            // so that it stays valid and unaliased.
            let work = unsafe { &mut *work.cast::<&mut dyn FnMut()>() };
            work();
            127
        }
        let mut work = work;
        // SAFETY: adding the length of the mapping gives its end, where a stack that grows down starts.
        let top = unsafe { self.bottom.byte_add(STACK_SIZE) };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: clone demands a function that fits, the top of a writable stack that nobody else
        // uses, and an argument that lives until the child is done, which CLONE_VFORK waits for. The
        // caller promises that there is no other thread to share the memory with.
        let pid = unsafe { libc::clone(begin, top, flags, (&raw mut work).cast()) };
        if pid == -1 {
            return Err(last_errno());
        }
        Pid::from_raw(pid).ok_or(Errno::SRCH)
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`; no child runs on it when its owner goes.
        unsafe { libc::munmap(self.bottom, STACK_SIZE) };
    }
}

fn check(result: libc::c_long) -> Result<(), Errno> {
    if result == -1 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    // A failed libc call always sets errno.
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
