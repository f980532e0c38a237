//! Loaded into a runtime that is started once and copied for every sandbox: takes the place of `fork`.
//!
//! The runtime does its start-up work and calls `fork` once. Here that call does not come back in the
//! caller: it waits for orders, and in each copy it makes, which by then stands inside the walls of a
//! sandbox, it returns as a child's `fork` does. The runtime's own care for children of a fork (locks,
//! random numbers) is taken for every copy.
//!
//! A copy has to be a child of the sandbox's init, in its PID namespace. So this process first makes a
//! helper there that shares its memory; the helper makes the copy and ends at once; and the kernel gives
//! the orphan to the namespace's init. Memory is copied once, and only where it is written to.
//!
//! The steps are those of `program.rs` and `init/mod.rs`, in the same order, without anything that allocates
//! or takes a lock. The order's format is in `original.rs`, which sends it.

#![no_std]
#![allow(clippy::missing_safety_doc)]

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

#[link(name = "c")]
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// The core library names it; nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Numbers of system calls, as the kernel has them.
#[cfg(target_arch = "x86_64")]
mod number {
    pub const CLOSE: i64 = 3;
    pub const DUP3: i64 = 292;
    pub const SENDMSG: i64 = 46;
    pub const RECVMSG: i64 = 47;
    pub const EXIT_GROUP: i64 = 231;
    pub const WAIT4: i64 = 61;
    pub const CHDIR: i64 = 80;
    pub const UMASK: i64 = 95;
    pub const SETSID: i64 = 112;
    pub const SETGROUPS: i64 = 116;
    pub const SETRESUID: i64 = 117;
    pub const SETRESGID: i64 = 119;
    pub const CAPSET: i64 = 126;
    pub const PRCTL: i64 = 157;
    pub const KEYCTL: i64 = 250;
    pub const SET_ROBUST_LIST: i64 = 273;
    pub const GET_ROBUST_LIST: i64 = 274;
    pub const WRITE: i64 = 1;
    pub const GETPID: i64 = 39;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const CLOSE: i64 = 57;
    pub const DUP3: i64 = 24;
    pub const SENDMSG: i64 = 211;
    pub const RECVMSG: i64 = 212;
    pub const EXIT_GROUP: i64 = 94;
    pub const WAIT4: i64 = 260;
    pub const CHDIR: i64 = 49;
    pub const UMASK: i64 = 166;
    pub const SETSID: i64 = 157;
    pub const SETGROUPS: i64 = 159;
    pub const SETRESUID: i64 = 147;
    pub const SETRESGID: i64 = 149;
    pub const CAPSET: i64 = 91;
    pub const PRCTL: i64 = 167;
    pub const KEYCTL: i64 = 219;
    pub const SET_ROBUST_LIST: i64 = 99;
    pub const GET_ROBUST_LIST: i64 = 100;
    pub const WRITE: i64 = 64;
    pub const GETPID: i64 = 172;
}
/// The same on every machine.
const SETNS: i64 = if cfg!(target_arch = "x86_64") { 308 } else { 268 };
const SECCOMP: i64 = if cfg!(target_arch = "x86_64") { 317 } else { 277 };
const RSEQ: i64 = if cfg!(target_arch = "x86_64") { 334 } else { 293 };
const PIDFD_OPEN: i64 = 434;
const CLOSE_RANGE: i64 = 436;
const LANDLOCK_RESTRICT_SELF: i64 = 446;

/// What the kernel says of a call that it does not have.
const NOT_THERE: c_int = 38;
const NEW_PID: c_long = 0x2000_0000;
const LARGEST_MESSAGE: usize = 16 * 1024;
const MOST_DESCRIPTORS: usize = 16;
/// The program's user and group inside.
const INSIDE_ID: c_long = 1000;
/// See `capabilities.rs`: no special root, no change by ids, nothing kept or raised, all of it locked.
const LOCKED_SECUREBITS: c_long = 0b1110_1111;

/// What is the same for every copy.
struct Settings {
    /// Namespaces to join, as flags.
    namespaces: c_long,
    has_own_ids: bool,
    /// The filter's instructions, and how many there are.
    filter: [u8; LARGEST_MESSAGE],
    instructions: u16,
}

/// Set once in a copy: from then on `fork` is what it always was.
static IS_COPY: AtomicBool = AtomicBool::new(false);

/// What a runtime calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> c_int {
    // SAFETY: the name is terminated, and nobody changes the environment in between.
    let socket = unsafe { getenv(c"SANDBOX_FORK_SOCKET".as_ptr()) };
    if socket.is_null() || IS_COPY.load(Ordering::Relaxed) {
        // SAFETY: RTLD_NEXT asks for the definition that this one hides, which has this type.
        return unsafe {
            let next = dlsym(-1_isize as *mut c_void, c"fork".as_ptr());
            core::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(next)()
        };
    }
    // SAFETY: getenv gave a terminated text.
    let socket = unsafe { parse(socket) };
    serve(socket);
    IS_COPY.store(true, Ordering::Relaxed);
    0
}

/// Waits for orders and makes copies. Comes back in each of them.
fn serve(socket: c_long) {
    let mut bytes = [0_u8; LARGEST_MESSAGE];
    let mut descriptors = [-1_i32; MOST_DESCRIPTORS];
    let length = receive(socket, &mut bytes, &mut descriptors).0;
    // First flags, then whether ids are its own, then the filter.
    if length < 5 {
        exit(1);
    }
    let mut settings = Settings {
        namespaces: c_long::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        has_own_ids: bytes[4] != 0,
        filter: [0; LARGEST_MESSAGE],
        instructions: ((length - 5) / 8) as u16,
    };
    settings.filter[..length - 5].copy_from_slice(&bytes[5..length]);
    // SAFETY: both take numbers.
    let (me, own) = unsafe {
        let me = syscall(number::GETPID);
        (me, syscall(PIDFD_OPEN, me, 0))
    };
    let (tid, robust) = thread_state(me);
    send(socket, b"ready", -1);
    loop {
        let (length, count) = receive(socket, &mut bytes, &mut descriptors);
        if length == 0 {
            exit(0);
        }
        // To whom to report, init, the three streams, the rules; then the cgroups.
        if count < 6 {
            exit(1);
        }
        let (report, init) = (c_long::from(descriptors[0]), c_long::from(descriptors[1]));
        // SAFETY: setns takes numbers. From here on children are in the sandbox's PID namespace.
        let entered = unsafe { syscall(SETNS, init, NEW_PID) };
        let helper = if entered == 0 { copy_by_helper(tid) } else { -1 };
        match helper {
            0 => {
                become_member(&settings, &descriptors[..count], robust);
                return;
            }
            -1 => fail(report, 1),
            // SAFETY: wait4 allows no places for results; the flag is for children that tell nobody.
            helper => unsafe {
                const ALL: c_long = 0x4000_0000;
                syscall(number::WAIT4, helper, 0_usize, ALL, 0_usize);
            },
        }
        // SAFETY: setns and close take numbers.
        unsafe {
            syscall(SETNS, own, NEW_PID);
            for descriptor in &descriptors[..count] {
                syscall(number::CLOSE, c_long::from(*descriptor));
            }
        }
    }
}

/// In the copy: puts every wall around it, and says so.
fn become_member(settings: &Settings, descriptors: &[c_int], robust: (usize, usize)) {
    let at = |place: usize| c_long::from(descriptors[place]);
    let report = at(0);
    let step = |number: u8, result: c_long| {
        if result < 0 {
            fail(report, number);
            exit(1);
        }
    };
    // SAFETY: each of these calls takes numbers, terminated texts, or structures of the kernel's layout that
    // live on this stack. None changes memory that the runtime uses.
    unsafe {
        // What the C library does for a child: its list of robust locks and its rseq area.
        syscall(number::SET_ROBUST_LIST, robust.0, robust.1);
        register_rseq();
        for entry in &descriptors[6..] {
            step(2, syscall(number::WRITE, c_long::from(*entry), c"0".as_ptr(), 1_usize));
        }
        step(3, syscall(SETNS, at(1), settings.namespaces));
        // An empty session keyring; a kernel without keyrings has none to share.
        if syscall(number::KEYCTL, 1_usize, 0_usize) < 0 && *__errno_location() != NOT_THERE {
            step(16, -1);
        }
        step(4, syscall(number::SETSID));
        for stream in 0..3 {
            step(5, syscall(number::DUP3, at(2 + stream), stream, 0_usize));
        }
        syscall(number::UMASK, 0o022_usize);
        step(6, syscall(number::CHDIR, c"/work".as_ptr()));
        step(7, lock_out_capabilities());
        if settings.has_own_ids {
            step(8, syscall(number::SETGROUPS, 0_usize, 0_usize));
            step(8, syscall(number::SETRESGID, INSIDE_ID, INSIDE_ID, INSIDE_ID));
            step(8, syscall(number::SETRESUID, INSIDE_ID, INSIDE_ID, INSIDE_ID));
        }
        let header: [u32; 2] = [0x2008_0522, 0];
        let none: [u32; 6] = [0; 6];
        step(9, syscall(number::CAPSET, header.as_ptr(), none.as_ptr()));
        // Changing ids made it undumpable; a program that was started by exec would not be.
        step(10, prctl(4, 1));
        // No new privileges.
        step(11, prctl(38, 1));
        step(12, syscall(LANDLOCK_RESTRICT_SELF, at(5), 0_usize));
        let listener = install_filter(settings);
        step(13, listener);
        let process = syscall(number::GETPID) as u32;
        let [a, b, c, d] = process.to_le_bytes();
        step(14, send(report, &[0, a, b, c, d], listener as c_int));
        step(15, syscall(CLOSE_RANGE, 3_usize, u32::MAX as usize, 0_usize));
    }
}

/// Makes sure no capability can come back: not by exec, not by changing ids.
unsafe fn lock_out_capabilities() -> c_long {
    const BOUNDING_SET_DROP: c_long = 24;
    const AMBIENT: c_long = 47;
    const AMBIENT_CLEAR_ALL: c_long = 4;
    const SET_SECUREBITS: c_long = 28;
    // SAFETY: prctl takes numbers for these. Dropping fails where this kernel's capabilities end.
    unsafe {
        let mut capability = 0;
        while capability < 64 && prctl(BOUNDING_SET_DROP, capability) == 0 {
            capability += 1;
        }
        let cleared = prctl(AMBIENT, AMBIENT_CLEAR_ALL);
        if cleared < 0 { cleared } else { prctl(SET_SECUREBITS, LOCKED_SECUREBITS) }
    }
}

unsafe fn install_filter(settings: &Settings) -> c_long {
    /// The kernel's `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const u8,
    }
    const SET_MODE_FILTER: c_long = 1;
    const NEW_LISTENER: c_long = 1 << 3;
    const WAIT_KILLABLE: c_long = 1 << 5;
    let program = Program { length: settings.instructions, instructions: settings.filter.as_ptr() };
    let program = &raw const program;
    // SAFETY: seccomp wants a program that is alive across the call. Linux before 5.19 lacks the second
    // flag.
    unsafe {
        let listener = syscall(SECCOMP, SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, program);
        if listener >= 0 {
            listener
        } else {
            syscall(SECCOMP, SET_MODE_FILTER, NEW_LISTENER, program)
        }
    }
}

/// Makes a helper that shares this memory, which makes a copy and ends. Gives the helper's id here, 0 in the
/// copy, and -1 if there is none.
#[cfg(target_arch = "x86_64")]
fn copy_by_helper(tid: usize) -> c_long {
    const SHARING: usize = 0x100 | 0x4000;
    const COPYING: usize = 0x0100_0000 | 0x0020_0000 | 17;
    let result: c_long;
    // SAFETY: the first clone (flags VM and VFORK, no stack of its own) stops this process until the helper
    // has ended; the helper runs the next few instructions, which touch no memory. The second one (flags
    // CHILD_SETTID, CHILD_CLEARTID and a signal) is a plain fork, whose child goes on here in a copy of the
    // memory: to the compiler this is one call that returns, once in each process.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, 56",
            "mov rdi, r12",
            "xor esi, esi",
            "xor edx, edx",
            "xor r8d, r8d",
            "syscall",
            "test rax, rax",
            "jz 2f",
            "mov eax, 60",
            "xor edi, edi",
            "syscall",
            "2:",
            inlateout("rax") 56_i64 => result,
            inlateout("rdi") SHARING => _,
            inlateout("rsi") 0_usize => _,
            inlateout("rdx") 0_usize => _,
            in("r10") tid,
            inlateout("r8") 0_usize => _,
            in("r12") COPYING,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    if result < 0 { -1 } else { result }
}

/// The same.
#[cfg(target_arch = "aarch64")]
fn copy_by_helper(tid: usize) -> c_long {
    const SHARING: usize = 0x100 | 0x4000;
    const COPYING: usize = 0x0100_0000 | 0x0020_0000 | 17;
    let result: c_long;
    // SAFETY: as above; the arguments stand in another order on this machine.
    unsafe {
        core::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x0, x9",
            "mov x1, xzr",
            "mov x2, xzr",
            "mov x3, xzr",
            "svc 0",
            "cbz x0, 2f",
            "mov x8, #93",
            "mov x0, xzr",
            "svc 0",
            "2:",
            inlateout("x0") SHARING => result,
            inlateout("x1") 0_usize => _,
            inlateout("x2") 0_usize => _,
            inlateout("x3") 0_usize => _,
            in("x4") tid,
            inlateout("x8") 220_usize => _,
            in("x9") COPYING,
        );
    }
    if result < 0 { -1 } else { result }
}

/// Where the C library keeps this thread's id and its list of robust locks.
fn thread_state(me: c_long) -> (usize, (usize, usize)) {
    const GET_TID_ADDRESS: c_long = 40;
    let (mut tid, mut head, mut length) = (0_usize, 0_usize, 0_usize);
    // SAFETY: both calls write a number to each place they are given.
    unsafe {
        syscall(number::PRCTL, GET_TID_ADDRESS, &raw mut tid, 0_usize, 0_usize, 0_usize);
        syscall(number::GET_ROBUST_LIST, me, &raw mut head, &raw mut length);
    }
    if tid == 0 {
        // Without it the C library of a copy would not know itself.
        exit(1);
    }
    (tid, (head, length))
}

/// Registers the area in which the kernel leaves the number of the CPU: the helper, of which this process
/// is a copy, had none.
unsafe fn register_rseq() {
    const SIGNATURE: usize = if cfg!(target_arch = "x86_64") { 0x5305_3053 } else { 0xd428_bc00 };
    // SAFETY: both symbols, where the C library has them, are numbers as it documents them; the area lies
    // beside the thread pointer, which is its own first word (x86-64) or a register (aarch64).
    unsafe {
        let offset = dlsym(core::ptr::null_mut(), c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = dlsym(core::ptr::null_mut(), c"__rseq_size".as_ptr()).cast::<u32>();
        if offset.is_null() || size.is_null() || *size == 0 {
            return;
        }
        let area = thread_pointer().wrapping_offset(*offset);
        syscall(RSEQ, area, 32_usize, 0_usize, SIGNATURE);
    }
}

#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: the first word of the thread's own block points to itself.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) pointer) };
    pointer
}

#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: reading the register has no effect.
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer) };
    pointer
}

/// The kernel's `struct iovec`.
#[repr(C)]
struct Vector {
    base: *mut u8,
    length: usize,
}

/// The kernel's `struct msghdr`.
#[repr(C)]
struct Header {
    name: usize,
    name_length: u32,
    vectors: *mut Vector,
    vector_count: usize,
    control: *mut u64,
    control_length: usize,
    flags: c_int,
}

/// Room for a control message: its length, its kind, and the descriptors.
const CONTROL: usize = 2 + MOST_DESCRIPTORS / 2;
const SOCKET_RIGHTS: u64 = 1 | (1 << 32);

/// Waits for a message. Gives its length, 0 if nobody is left to send one, and how many descriptors came.
fn receive(
    socket: c_long,
    bytes: &mut [u8],
    descriptors: &mut [c_int; MOST_DESCRIPTORS],
) -> (usize, usize) {
    const CLOSE_ON_EXEC: c_long = 0x4000_0000;
    let mut control = [0_u64; CONTROL];
    let mut vector = Vector { base: bytes.as_mut_ptr(), length: bytes.len() };
    let mut header = header(&mut vector, &mut control, CONTROL * 8);
    // SAFETY: the header describes places on this stack and in `bytes`, and the kernel keeps to them.
    let received = unsafe { syscall(number::RECVMSG, socket, &raw mut header, CLOSE_ON_EXEC) };
    if received <= 0 {
        return (0, 0);
    }
    let count = if header.control_length >= 16 && control[1] == SOCKET_RIGHTS {
        (control[0] as usize).saturating_sub(16) / 4
    } else {
        0
    };
    for (place, descriptor) in descriptors.iter_mut().enumerate().take(count) {
        *descriptor = (control[2 + place / 2] >> (32 * (place % 2))) as c_int;
    }
    (received as usize, count)
}

/// Sends a message, with a descriptor unless it is negative.
fn send(socket: c_long, bytes: &[u8], descriptor: c_int) -> c_long {
    const NO_SIGNAL: c_long = 0x4000;
    let mut control = [20, SOCKET_RIGHTS, u64::from(descriptor as u32), 0, 0, 0, 0, 0, 0, 0];
    let mut vector = Vector { base: bytes.as_ptr().cast_mut(), length: bytes.len() };
    let length = if descriptor < 0 { 0 } else { 24 };
    let mut header = header(&mut vector, &mut control, length);
    // SAFETY: the header describes places on this stack and in `bytes`, which the kernel only reads.
    unsafe { syscall(number::SENDMSG, socket, &raw mut header, NO_SIGNAL) }
}

fn header(vector: &mut Vector, control: &mut [u64; CONTROL], control_length: usize) -> Header {
    Header {
        name: 0,
        name_length: 0,
        vectors: vector,
        vector_count: 1,
        control: control.as_mut_ptr(),
        control_length,
        flags: 0,
    }
}

/// Tells that a step failed, and with which error.
fn fail(report: c_long, step: u8) {
    // SAFETY: the C library gives the place of this thread's error number.
    let [a, b, c, d] = unsafe { *__errno_location() }.to_le_bytes();
    send(report, &[1, step, a, b, c, d], -1);
}

unsafe fn prctl(option: c_long, value: c_long) -> c_long {
    // SAFETY: the caller passes an option that takes a number.
    unsafe { syscall(number::PRCTL, option, value, 0_usize, 0_usize, 0_usize) }
}

fn exit(code: c_long) -> ! {
    loop {
        // SAFETY: this ends the process.
        unsafe { syscall(number::EXIT_GROUP, code) };
    }
}

/// Reads a decimal number.
unsafe fn parse(mut text: *const c_char) -> c_long {
    let mut value = 0;
    loop {
        // SAFETY: the text is terminated, and reading stops there.
        let digit = unsafe { *text } as u8;
        if !digit.is_ascii_digit() {
            return value;
        }
        value = value * 10 + c_long::from(digit - b'0');
        // SAFETY: the byte before was not the last.
        text = unsafe { text.add(1) };
    }
}
