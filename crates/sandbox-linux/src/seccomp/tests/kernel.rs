//! The installed filter, in threads and children of the test process: a filter applies only to the
//! thread that installs it and to what that thread starts.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_int, c_long};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::{
    Arch, DeniedAction, Listener, Notifications, Profile, Program, Verdict, install,
};

/// How often each call was denied.
pub(super) type Violations = BTreeMap<&'static str, u32>;

pub(super) fn program(denied: DeniedAction) -> Program {
    let compiled = Profile::builtin().compile(Arch::NATIVE, denied);
    compiled.expect("the shipped profile compiles")
}

/// Runs `work` in a thread under a filter with a listener, answers its denied calls, and returns
/// its result with the counts. Gives up after a minute.
pub(super) fn supervised<T: Send>(work: impl FnOnce() -> T + Send) -> (T, Violations) {
    let program = program(DeniedAction::Notify);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let confined = scope.spawn(move || {
            rustix::thread::set_no_new_privs(true).expect("always possible");
            let listener = install(&program.instructions, Listener::Wanted).expect("installs");
            sender.send(listener.expect("was wanted")).expect("the test waits for it");
            drop(sender);
            work()
        });
        let listener = receiver.recv().expect("the thread installs a filter");
        let notifications = Notifications::new(listener).expect("the kernel has the operation");
        let violations = answer_until_all_are_gone(&notifications);
        // Without a listener whatever is still blocked gets ENOSYS and the thread can be joined.
        drop(notifications);
        (confined.join().expect("the thread ends well"), violations.expect("within a minute"))
    })
}

fn answer_until_all_are_gone(notifications: &Notifications) -> Option<Violations> {
    let profile = Profile::builtin();
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut violations = Violations::new();
    while Instant::now() < deadline {
        let mut ready = [PollFd::new(notifications, PollFlags::IN)];
        poll(&mut ready, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).expect("polls");
        while let Some(call) = notifications.receive().expect("receives") {
            let verdict = profile.verdict(Arch::NATIVE, call.number, call.arguments);
            let Verdict::Deny { name, errno, quiet: false } = verdict else {
                panic!("the kernel reported {call:?}, and the verdict is {verdict:?}");
            };
            assert_eq!(call.audit_arch, Arch::NATIVE.audit_number());
            *violations.entry(name).or_default() += 1;
            notifications.refuse(call.id, errno).expect("answers");
        }
        if ready[0].revents().contains(PollFlags::HUP) {
            return Some(violations);
        }
    }
    None
}

/// Makes a bare call with integer arguments; gives its errno, or 0.
fn call(number: c_long, arguments: [u64; 3]) -> c_int {
    let [first, second, third] = arguments;
    // SAFETY: the tests below make calls that the filter must deny. If one were carried out after
    // all, null pointers and the empty flags would make it fail or do nothing to memory.
    let result = unsafe { libc::syscall(number, first, second, third, 0_u64, 0_u64) };
    if result < 0 { std::io::Error::last_os_error().raw_os_error().unwrap_or(-1) } else { 0 }
}

/// libc gives it different types on different targets.
const TIOCSTI: u64 = 0x5412;

const HIGH_BITS: u64 = 0xdead_beef_0000_0000;

/// Calls an attacker would make: number, arguments, errno.
const DENIED: &[(c_long, [u64; 3], c_int)] = &[
    (libc::SYS_ptrace, [16, 1, 0], libc::EPERM),
    (libc::SYS_unshare, [0x1000_0000, 0, 0], libc::EPERM),
    (libc::SYS_clone3, [0, 0, 0], libc::ENOSYS),
    (libc::SYS_clone, [0x1000_0011, 0, 0], libc::EPERM),
    (libc::SYS_socket, [40, 1, 0], libc::EAFNOSUPPORT),
    (libc::SYS_socket, [0x28 | HIGH_BITS, 1, 0], libc::EAFNOSUPPORT),
    (libc::SYS_socket, [2, 3, 1], libc::EPERM),
    (libc::SYS_ioctl, [0, TIOCSTI, 0], libc::EPERM),
    (libc::SYS_ioctl, [0, TIOCSTI | HIGH_BITS, 0], libc::EPERM),
    (libc::SYS_prctl, [35, 0, 0], libc::EINVAL),
    (libc::SYS_seccomp, [1, 8, 0], libc::EINVAL),
    (libc::SYS_io_uring_setup, [1, 0, 0], libc::ENOSYS),
    (libc::SYS_keyctl, [0, 0, 0], libc::EPERM),
    (1_000, [0, 0, 0], libc::ENOSYS),
];

fn attack() {
    for &(number, arguments, errno) in DENIED {
        assert_eq!(call(number, arguments), errno, "call {number} {arguments:x?}");
    }
    // What is allowed still works, with high bits that the kernel ignores as well as without.
    assert_eq!(call(libc::SYS_getpid, [0; 3]), 0);
    assert_eq!(call(libc::SYS_personality, [0xffff_ffff | HIGH_BITS, 0, 0]), 0);
}

#[test]
fn denied_calls_get_their_errno_from_the_kernel_without_a_listener() {
    let program = program(DeniedAction::Errno);
    let confined = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).expect("always possible");
        let listener = install(&program.instructions, Listener::Unwanted).expect("installs");
        assert!(listener.is_none());
        attack();
    });
    confined.join().expect("every call was answered as expected");
}

#[test]
fn denied_calls_are_named_counted_and_answered_by_the_supervisor() {
    let ((), violations) = supervised(attack);
    let expected = [
        ("clone", 1),
        ("ioctl", 2),
        ("keyctl", 1),
        ("prctl", 1),
        ("ptrace", 1),
        ("seccomp", 1),
        ("socket", 3),
        ("unknown", 1),
        ("unshare", 1),
    ];
    assert_eq!(violations, Violations::from(expected));
}

#[test]
fn denied_calls_fail_when_the_supervisor_is_gone() {
    let program = program(DeniedAction::Notify);
    let confined = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).expect("always possible");
        drop(install(&program.instructions, Listener::Wanted).expect("installs"));
        call(libc::SYS_ptrace, [16, 1, 0])
    });
    assert_eq!(confined.join().expect("ends well"), libc::ENOSYS);
}

#[test]
fn receiving_does_not_wait_when_nothing_was_denied() {
    let program = program(DeniedAction::Notify);
    let (listener_sender, listener) = mpsc::channel();
    let (may_end, wait_for_end) = mpsc::channel::<()>();
    let confined = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).expect("always possible");
        let listener = install(&program.instructions, Listener::Wanted).expect("installs");
        listener_sender.send(listener.expect("was wanted")).expect("the test waits for it");
        // An error says that the other end is dropped, which is the sign to end.
        let _ = wait_for_end.recv();
    });
    let listener = listener.recv().expect("the thread installs a filter");
    let notifications = Notifications::new(listener).expect("the kernel has the operation");
    assert_eq!(notifications.receive(), Ok(None));
    drop(may_end);
    confined.join().expect("ends well");
    assert_eq!(notifications.receive(), Ok(None));
}

#[cfg(target_arch = "x86_64")]
mod other_abis {
    use std::arch::asm;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the child must die by the signal, not the test")]
    fn a_call_through_the_32_bit_gate_kills_the_process() {
        let program = program(DeniedAction::Errno);
        // SAFETY: between fork and _exit the child makes system calls and nothing else: no
        // allocation, no locks, no unwinding.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let confined = rustix::thread::set_no_new_privs(true).is_ok()
                && install(&program.instructions, Listener::Unwanted).is_ok();
            if confined {
                // SAFETY: 20 is getpid in the 32-bit table; it takes nothing and touches no memory.
                // The gate may clobber r8 to r11, which are declared.
                unsafe {
                    asm!("int 0x80", inlateout("eax") 20 => _,
                         out("r8") _, out("r9") _, out("r10") _, out("r11") _);
                }
            }
            // SAFETY: _exit only ends the process.
            unsafe { libc::_exit(i32::from(!confined)) };
        }
        let mut status = 0;
        // SAFETY: waitpid writes an int to the pointer, which is one.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        assert!(libc::WIFSIGNALED(status), "status {status:#x}");
        // A kernel built without 32-bit calls has no such gate, and the instruction itself faults.
        let signal = libc::WTERMSIG(status);
        assert!([libc::SIGSYS, libc::SIGSEGV].contains(&signal), "signal {signal}");
    }

    #[test]
    fn a_call_with_the_x32_bit_is_refused_and_reported() {
        let ((), violations) =
            supervised(|| assert_eq!(call(0x4000_0000 | libc::SYS_getpid, [0; 3]), libc::ENOSYS));
        assert_eq!(violations, Violations::from([("x32", 1)]));
    }
}
