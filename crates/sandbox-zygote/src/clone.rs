//! Forking into another PID namespace, and the state of a thread that a raw fork loses.

use core::ffi::{c_long, c_void};
use core::ptr;

use crate::dlsym;
use crate::sys::{GET_ROBUST_LIST, PRCTL, RSEQ, SET_ROBUST_LIST, WAIT4, exit, set_errno, syscall};

/// `CLONE_VM` and `CLONE_VFORK`.
const HELPER_FLAGS: usize = 0x100 | 0x4000;
/// `CLONE_CHILD_SETTID`, `CLONE_CHILD_CLEARTID` and `SIGCHLD`.
const FORK_FLAGS: usize = 0x0100_0000 | 0x0020_0000 | 0x11;

/// What every fork of this thread needs to know about it.
pub(crate) struct Clones {
    /// Where the C library keeps the thread's id.
    tid: usize,
    /// Its list of robust locks: the head, and its length.
    robust_list: (usize, usize),
}

impl Clones {
    /// Looks it up for the calling thread of this process.
    pub(crate) fn prepare(process: c_long) -> Self {
        const PR_GET_TID_ADDRESS: c_long = 40;
        const ZERO: c_long = 0;
        let (mut tid, mut head, mut length) = (0_usize, 0_usize, 0_usize);
        // SAFETY: this option writes one address, to a variable that outlives the call.
        unsafe { syscall(PRCTL, PR_GET_TID_ADDRESS, &raw mut tid, ZERO, ZERO, ZERO) };
        // SAFETY: get_robust_list(2) writes an address and a length, to variables that outlive the call.
        unsafe { syscall(GET_ROBUST_LIST, process, &raw mut head, &raw mut length) };
        if tid == 0 {
            // The C library of a fork would take itself for the zygote.
            exit(1);
        }
        Self { tid, robust_list: (head, length) }
    }

    /// Makes a helper that shares this memory, which forks and exits. Returns the helper's id here, 0 in the fork, and a
    /// negative number if there is none.
    pub(crate) fn fork_by_helper(&self) -> c_long {
        const MAX_ERRNO: c_long = 4095;
        let result = clone_twice(self.tid);
        if (-MAX_ERRNO..0).contains(&result) {
            set_errno(result);
        }
        result
    }

    /// In a fork: does for it what the C library does for a child.
    pub(crate) fn restore_thread_state(&self) {
        let (head, length) = self.robust_list;
        // SAFETY: set_robust_list(2) demands the head of a list that lives as long as the thread. It is this thread's own,
        // at the same address as in the zygote.
        unsafe { syscall(SET_ROBUST_LIST, head, length) };
        register_rseq();
    }
}

/// Reaps a helper. It signals nobody when it exits, so it has to be waited for by a flag of its own.
pub(crate) fn reap_helper(helper: c_long) {
    const WALL: c_long = 0x4000_0000;
    const NULL: c_long = 0;
    // SAFETY: wait4(2) writes nothing where it is given null pointers.
    unsafe { syscall(WAIT4, helper, NULL, WALL, NULL) };
}

#[cfg(target_arch = "x86_64")]
fn clone_twice(tid: usize) -> c_long {
    let result: c_long;
    // SAFETY: the registers that the code and the kernel change are declared. The first clone (VM and VFORK, no stack of its
    // own) stops this process until the helper has exited; the helper runs the next few instructions, which touch no
    // memory. The second clone (CHILD_SETTID, CHILD_CLEARTID and SIGCHLD) is a plain fork, whose child goes on here in a
    // copy of the memory: to the compiler this is one call that returns, once in each process. The kernel writes the
    // child's thread id to `tid`, where the C library keeps it.
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
            inlateout("rdi") HELPER_FLAGS => _,
            inlateout("rsi") 0_usize => _,
            inlateout("rdx") 0_usize => _,
            in("r10") tid,
            inlateout("r8") 0_usize => _,
            in("r12") FORK_FLAGS,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
fn clone_twice(tid: usize) -> c_long {
    let result: c_long;
    // SAFETY: as on x86-64; the arguments of clone are in another order here.
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
            inlateout("x0") HELPER_FLAGS => result,
            inlateout("x1") 0_usize => _,
            inlateout("x2") 0_usize => _,
            inlateout("x3") 0_usize => _,
            in("x4") tid,
            inlateout("x8") 220_usize => _,
            in("x9") FORK_FLAGS,
        );
    }
    result
}

/// Registers the area in which the kernel keeps the number of the CPU. The helper, of which a fork is a copy, had none.
fn register_rseq() {
    const SIGNATURE: usize = if cfg!(target_arch = "x86_64") { 0x5305_3053 } else { 0xd428_bc00 };
    const AREA_BYTES: usize = 32;
    const NO_FLAGS: usize = 0;
    // SAFETY: dlsym demands a terminated name; a null handle asks for the first definition.
    let offset = unsafe { dlsym(ptr::null_mut(), c"__rseq_offset".as_ptr()) }.cast::<isize>();
    // SAFETY: as above.
    let size = unsafe { dlsym(ptr::null_mut(), c"__rseq_size".as_ptr()) }.cast::<u32>();
    // SAFETY: a C library that has these symbols documents them as constants of these types.
    let (Some(offset), Some(size)) = (unsafe { offset.as_ref() }, unsafe { size.as_ref() }) else {
        return;
    };
    if *size == 0 {
        return;
    }
    let area: *mut c_void = thread_pointer().wrapping_offset(*offset).cast();
    // SAFETY: rseq(2) demands an area that lives as long as the thread. The C library reserves it at this offset from the
    // thread pointer.
    unsafe { syscall(RSEQ, area, AREA_BYTES, NO_FLAGS, SIGNATURE) };
}

#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: on x86-64 the first word of the thread's control block is its own address. Reading it changes nothing.
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

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::c_int;
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::sys::GETPID;

    pub(crate) fn wait_for(child: c_int) -> c_int {
        const NULL: c_long = 0;
        let mut status = 0;
        // SAFETY: wait4(2) writes a status to a variable that outlives the call, and no usage to a null pointer.
        let waited = unsafe { syscall(WAIT4, c_long::from(child), &raw mut status, NULL, NULL) };
        assert_eq!(waited, c_long::from(child));
        status
    }

    #[test]
    fn a_fork_runs_in_a_copy_of_the_memory_and_is_not_a_child() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let clones = Clones::prepare(GETPID.call(0, 0, 0));
        let mut number = 1;
        let helper = clones.fork_by_helper();
        if helper == 0 {
            clones.restore_thread_state();
            number += 1;
            let _ = writer.write_all(&[number]);
            exit(0);
        }
        drop(writer);
        assert!(helper > 0, "{helper}");
        reap_helper(helper);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.as_slice(), number), (&[2][..], 1));
    }
}
