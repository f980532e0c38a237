//! The calls whose answers matter most, written out by hand: a mistake in the data, or in the
//! reading of it, cannot hide behind two roads that agree.

use libc::{EAFNOSUPPORT, EINVAL, ENOMEM, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};

use super::super::{Affinity, Arch, DeniedAction, FilterOptions, Profile, Verdict};
use super::options;

/// Bits above those that the kernel looks at in an `int` argument.
const HIGH: u64 = 0xdead_beef_0000_0000;

#[derive(Clone, Copy, Debug)]
enum Expected {
    Allowed,
    Denied(i32),
    QuietlyDenied(i32),
}
use Expected::{Allowed, Denied, QuietlyDenied};

/// Checks, on both architectures, what each list of arguments of the call `name` leads to.
fn check(name: &'static str, rows: &[(&[u64], Expected)]) {
    check_with(options(DeniedAction::Notify), name, rows);
}

fn check_with(options: FilterOptions, name: &'static str, rows: &[(&[u64], Expected)]) {
    let profile = Profile::builtin();
    for arch in Arch::ALL {
        let number = arch.number_of(name).expect("the call exists on both");
        for (given, expected) in rows {
            let mut arguments = [0; 6];
            arguments[..given.len()].copy_from_slice(given);
            let expected = match *expected {
                Allowed => Verdict::Allow,
                Denied(errno) => Verdict::Deny { name, errno, quiet: false },
                QuietlyDenied(errno) => Verdict::Deny { name, errno, quiet: true },
            };
            let verdict = profile.verdict(arch, &options, number, arguments);
            assert_eq!(verdict, expected, "{arch:?} {name} {given:x?}");
        }
    }
}

#[test]
fn plain_calls_are_allowed_denied_or_quietly_denied() {
    check("read", &[(&[], Allowed)]);
    check("landlock_restrict_self", &[(&[], Allowed)]);
    check("clone3", &[(&[], QuietlyDenied(ENOSYS))]);
    check("io_uring_setup", &[(&[], QuietlyDenied(ENOSYS))]);
    for name in ["ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "pidfd_getfd", "chroot"] {
        check(name, &[(&[], Denied(EPERM))]);
    }
}

#[test]
fn clone_makes_threads_and_processes_but_no_namespaces() {
    let rows: &[(&[u64], Expected)] = &[
        (&[0x003d_0f00], Allowed),
        (&[0x003d_0f00 | HIGH], Allowed),
        // 0x80 is CLONE_NEWTIME elsewhere; here it is part of the exit signal.
        (&[0x91], Allowed),
        // A table of descriptors is shared by threads, and not by processes.
        (&[0x411], Denied(EINVAL)),
        (&[0x0001_0411], Allowed),
        (&[0x4111 | HIGH], Allowed),
        (&[0x1000_0011], Denied(EPERM)),
        (&[0x1000_0411], Denied(EPERM)),
        (&[0x0002_0011 | HIGH], Denied(EPERM)),
    ];
    check("clone", rows);
    for namespace in [17, 25, 26, 27, 28, 29, 30] {
        check("clone", &[(&[1 << namespace], Denied(EPERM))]);
    }
}

#[test]
fn sockets_are_local_or_tcp_or_udp_or_routing_questions() {
    let rows: &[(&[u64], Expected)] = &[
        (&[1, 0x80801], Allowed),
        (&[2, 1, 6], Allowed),
        (&[2 | HIGH, 1 | HIGH, 6 | HIGH], Allowed),
        (&[10, 2, 17], Allowed),
        (&[16, 0x80003, 0], Allowed),
        (&[16, 3, 9], Denied(EPERM)),
        (&[2, 3, 1], Denied(EPERM)),
        (&[2, 0x80803, 1], Denied(EPERM)),
        (&[2, 10, 0], Denied(EPERM)),
        (&[2, 5, 132], Denied(EPERM)),
        (&[2, 1, 262], QuietlyDenied(EPROTONOSUPPORT)),
        (&[40, 1, 0], Denied(EAFNOSUPPORT)),
        (&[0x28 | HIGH, 1, 0], Denied(EAFNOSUPPORT)),
        (&[38, 5, 0], Denied(EAFNOSUPPORT)),
        (&[17, 2, 0], Denied(EAFNOSUPPORT)),
    ];
    check("socket", rows);
    check("socketpair", &[(&[1, 1], Allowed), (&[2, 1], Denied(EAFNOSUPPORT))]);
}

#[test]
fn terminal_requests_that_reach_others_are_denied_whatever_the_high_bits() {
    for request in [0x5412, 0x541c, 0x541d, 0x5423, 0x5437, 0x5457] {
        check("ioctl", &[(&[0, request], Denied(EPERM)), (&[0, request | HIGH], Denied(EPERM))]);
    }
    check("ioctl", &[(&[0, 0x5413], Allowed), (&[0, 0x5401 | HIGH], Allowed)]);
}

#[test]
fn a_process_may_tune_and_restrict_itself_and_no_more() {
    let personality: &[(&[u64], Expected)] = &[
        (&[0], Allowed),
        (&[u64::MAX], Allowed),
        (&[0x0004_0000], Allowed),
        (&[0x0040_0000], Denied(EINVAL)),
    ];
    check("personality", personality);
    let prctl: &[(&[u64], Expected)] = &[
        (&[15], Allowed),
        (&[0xf | HIGH], Allowed),
        (&[22, 1], Allowed),
        (&[22, 2], Denied(EINVAL)),
        (&[0x16 | HIGH, 2], Denied(EINVAL)),
        (&[28], Denied(EINVAL)),
        (&[35], Denied(EINVAL)),
        (&[47, 1], Allowed),
        (&[47, 2], Denied(EINVAL)),
        // The kernel compares all of this argument, and so does the filter.
        (&[47, 1 | HIGH], Denied(EINVAL)),
    ];
    check("prctl", prctl);
    let seccomp: &[(&[u64], Expected)] = &[
        (&[0, 0], Allowed),
        (&[1, 0], Denied(EINVAL)),
        (&[1, 17], Denied(EINVAL)),
        (&[1, 8], Denied(EINVAL)),
        (&[1 | HIGH, 9 | HIGH], Denied(EINVAL)),
        (&[3, 0], Denied(EINVAL)),
    ];
    check("seccomp", seccomp);
}

#[test]
fn what_no_memory_limit_counts_is_refused() {
    let huge = |name, flag: u64, place: usize| {
        let flags = |flags: u64| {
            let mut arguments = [0; 6];
            arguments[place] = flags;
            arguments
        };
        let rows: &[(&[u64], Expected)] = &[
            (&flags(0), Allowed),
            (&flags(!flag & 0xffff_ffff), Allowed),
            (&flags(flag), QuietlyDenied(ENOMEM)),
            (&flags(flag | 0x22 | HIGH), QuietlyDenied(ENOMEM)),
        ];
        check(name, rows);
    };
    huge("mmap", 0x4_0000, 3);
    huge("memfd_create", 4, 1);
    huge("shmget", 0o4000, 2);
    for name in ["setxattr", "lsetxattr", "fsetxattr", "setxattrat"] {
        check(name, &[(&[], QuietlyDenied(EOPNOTSUPP))]);
    }
    check("getxattr", &[(&[], Allowed)]);
    let locks: &[(&[u64], Expected)] = &[
        (&[3, 6], Allowed),
        (&[3, 7 | HIGH], Allowed),
        (&[3, 36], Allowed),
        (&[3, 37], QuietlyDenied(EINVAL)),
        (&[3, 0x26 | HIGH], QuietlyDenied(EINVAL)),
    ];
    check("fcntl", locks);
    check("vmsplice", &[(&[], Denied(ENOSYS))]);
}

#[test]
fn device_nodes_are_denied_and_other_nodes_are_not() {
    let rows: &[(&[u64], Expected)] = &[
        (&[0, 0, 0x11a4], Allowed),
        (&[0, 0, 0x01a4], Allowed),
        (&[0, 0, 0x21a4], Denied(EPERM)),
        (&[0, 0, 0x6180], Denied(EPERM)),
        (&[0, 0, 0x21a4 | HIGH], Denied(EPERM)),
    ];
    check("mknodat", rows);
}

#[test]
fn processors_may_be_chosen_unless_they_are_fixed() {
    let free = options(DeniedAction::Notify);
    check_with(free, "sched_setaffinity", &[(&[], Allowed)]);
    let fixed = FilterOptions { affinity: Affinity::Fixed, ..free };
    check_with(fixed, "sched_setaffinity", &[(&[], Denied(EPERM))]);
    check_with(fixed, "sched_getaffinity", &[(&[], Allowed)]);
}

#[test]
fn numbers_outside_the_table_do_not_exist_and_share_few_names() {
    let profile = Profile::builtin();
    let options = options(DeniedAction::Notify);
    let judge = |arch, number| profile.verdict(arch, &options, number, [0; 6]);
    let missing = |name| Verdict::Deny { name, errno: ENOSYS, quiet: false };
    assert_eq!(judge(Arch::X86_64, 400), missing("unknown"));
    assert_eq!(judge(Arch::X86_64, 0x3fff_ffff), missing("unknown"));
    assert_eq!(judge(Arch::X86_64, 0x4000_0000), missing("x32"));
    assert_eq!(judge(Arch::X86_64, u32::MAX), missing("x32"));
    assert_eq!(judge(Arch::Aarch64, 0x4000_0000), missing("unknown"));
}
