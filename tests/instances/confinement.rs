//! Each process of an instance is confined like the program of a sandbox with only one.

use sandbox::{Backend as _, Protection};
use sandbox_tests::skip::skip;
use sandbox_tests::user::as_ordinary_user;

use crate::harness::{bash, create, native_without, output, python, run, spec, with_instance};

/// Keeps signals within a sandbox.
const SCOPE: Protection = Protection::LandlockScope;

/// Tries to reach process 1 and the shim of this process: its parent.
const REACH_GUARDS: &str = "
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, call):
    try: result = call()
    except OSError: return
    if result != -1: print('reached', what, flush=True)
for guard in (1, os.getppid()):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        attempt(f'{guard} by signal {number}', lambda: os.kill(guard, number))
    for name in ('mem', 'maps', 'environ', 'fd/0', 'root/etc/passwd', 'cwd/x'):
        attempt(f'{guard}/{name}', lambda: os.open(f'/proc/{guard}/{name}', os.O_RDONLY))
    attempt(f'{guard} by ptrace', lambda: libc.ptrace(16, guard, 0, 0))
    attempt(f'{guard} by pidfd', lambda: libc.syscall(438, libc.syscall(434, guard, 0), 0, 0))
print('done')
";

#[test]
fn no_process_reaches_what_guards_it() {
    with_instance(|instance| {
        output(instance, bash("true"));
        let outcome = run(instance, python(REACH_GUARDS));
        assert_eq!(String::from_utf8_lossy(&outcome.stdout), "done\n", "{outcome:?}");
        assert_eq!(output(instance, bash("echo on")), "on\n");
    });
}

/// Without IDs to assign, guards and programs are one user, and only Landlock keeps signals apart.
#[test]
fn a_process_of_the_same_user_reaches_them_without_scoped_signals() {
    let name = "confinement::a_process_of_the_same_user_reaches_them_without_scoped_signals";
    if !native_without(&[]).capabilities().enforceable.contains(&SCOPE) {
        return skip(name, "this kernel's Landlock has no scope for signals");
    }
    as_ordinary_user(name, || {
        let reached = |without: &[Protection]| {
            let backend = native_without(without);
            let instance = create(&backend, spec());
            let outcome = run(instance.as_ref(), python(REACH_GUARDS));
            String::from_utf8_lossy(&outcome.stdout).into_owned()
        };
        assert_eq!(reached(&[]), "done\n");
        let reached = reached(&[SCOPE]);
        assert!(reached.contains("by signal"), "{reached}");
    });
}

#[test]
fn denied_calls_are_counted_for_the_process_that_made_them() {
    with_instance(|instance| {
        let denied = "import ctypes\nlibc = ctypes.CDLL(None)\n\
             print([libc.unshare(0x10000000) for _ in range(3)])";
        for _ in 0..2 {
            let outcome = run(instance, python(denied));
            assert_eq!(outcome.stdout, b"[-1, -1, -1]\n");
            let [violation] = &outcome.violations[..] else { panic!("{outcome:?}") };
            assert_eq!((violation.syscall.as_str(), violation.count), ("unshare", 3));
        }
        assert_eq!(run(instance, bash("true")).violations, []);
    });
}

/// One line of `/proc/self/status` for each protection, with it and without it.
#[test]
fn every_process_has_each_protection_that_is_on() {
    let status = "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; ulimit -c; ls /proc/self/fd | wc -l";
    let protected = "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n0\n4\n";
    let test = || {
        with_instance(|instance| {
            for _ in 0..2 {
                assert_eq!(output(instance, bash(status)), protected);
            }
        });
    };
    if rustix::process::geteuid().is_root() {
        test();
        for (protection, line) in
            [(Protection::Seccomp, "Seccomp:\t2"), (Protection::Capabilities, "0000000000000000")]
        {
            let backend = native_without(&[protection]);
            let instance = create(&backend, spec());
            let unprotected = output(instance.as_ref(), bash(status));
            assert!(!unprotected.contains(line), "without {protection}: {unprotected}");
        }
    }
    as_ordinary_user("confinement::every_process_has_each_protection_that_is_on", test);
}

#[test]
fn each_process_may_write_to_the_same_places_only() {
    with_instance(|instance| {
        let write = "for place in / /usr /etc /dev /proc /work /tmp /dev/shm; do \
             touch $place/$$ 2>/dev/null && echo $place; done; true";
        for _ in 0..2 {
            assert_eq!(output(instance, bash(write)), "/work\n/tmp\n/dev/shm\n");
        }
    });
}
