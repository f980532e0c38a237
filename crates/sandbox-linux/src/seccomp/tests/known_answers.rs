//! The decisions that matter most, written by hand: an error in the data, or in its interpretation,
//! would not show in the comparison of two implementations that agree.

use libc::{EAFNOSUPPORT, EINVAL, ENOMEM, ENOPROTOOPT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT};

use super::super::{Arch, Profile, Verdict};

/// Bits above those that the kernel uses of an `int` argument.
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
            let verdict = profile.verdict(arch, number, arguments);
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
fn sockets_are_local_or_tcp_or_udp() {
    let rows: &[(&[u64], Expected)] = &[
        (&[1, 0x80801], Allowed),
        (&[2, 1, 6], Allowed),
        (&[2 | HIGH, 1 | HIGH, 6 | HIGH], Allowed),
        (&[10, 2, 17], Allowed),
        (&[16, 0x80003, 0], QuietlyDenied(EAFNOSUPPORT)),
        (&[16 | HIGH, 2, HIGH], QuietlyDenied(EAFNOSUPPORT)),
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
fn only_options_that_hold_no_memory_can_be_set_on_a_socket() {
    let refused = QuietlyDenied(ENOPROTOOPT);
    let skipped = QuietlyDenied(0);
    let rows: &[(&[u64], Expected)] = &[
        // SO_REUSEADDR, SO_SNDBUF, SO_LINGER, SO_RCVTIMEO, SO_TIMESTAMPNS.
        (&[3, 1, 2], Allowed),
        (&[3, 1 | HIGH, 7 | HIGH], Allowed),
        (&[3, 1, 13], Allowed),
        (&[3, 1, 20], Allowed),
        (&[3, 1, 35], Allowed),
        // SO_RCVBUF, SO_REUSEPORT, IP_RECVERR, IPV6_RECVERR.
        (&[3, 1, 8], skipped),
        (&[3, 1, 15], skipped),
        (&[3, 1 | HIGH, 8 | HIGH], skipped),
        (&[3, 0, 11], skipped),
        (&[3, 41, 25], skipped),
        // SO_RCVLOWAT, SO_ATTACH_FILTER, SO_MARK, SO_TIMESTAMPING, SO_ATTACH_REUSEPORT_CBPF, SO_ZEROCOPY.
        (&[3, 1, 18], refused),
        (&[3, 1, 26], refused),
        (&[3, 1 | HIGH, 0x1a | HIGH], refused),
        (&[3, 1, 36], refused),
        (&[3, 1, 37], refused),
        (&[3, 1, 51], refused),
        (&[3, 1, 60], refused),
        // IP_TTL; IP_OPTIONS, IP_XFRM_POLICY, IP_ADD_MEMBERSHIP, MCAST_JOIN_GROUP.
        (&[3, 0, 2], Allowed),
        (&[3, 0, 4], refused),
        (&[3, 0, 17], refused),
        (&[3, 0, 35], refused),
        (&[3, 0, 42], refused),
        // TCP_NODELAY; TCP_MD5SIG, TCP_FASTOPEN, TCP_ULP, TCP_AO_ADD_KEY.
        (&[3, 6, 1], Allowed),
        (&[3, 6, 14], refused),
        (&[3, 6, 23], refused),
        (&[3, 6, 31], refused),
        (&[3, 6, 38], refused),
        // UDP_SEGMENT; UDP_CORK.
        (&[3, 17, 103], Allowed),
        (&[3, 17, 1], refused),
        // IPV6_V6ONLY; IPV6_JOIN_GROUP, IPV6_FLOWLABEL_MGR, IPV6_DSTOPTS.
        (&[3, 41, 26], Allowed),
        (&[3, 41, 20], refused),
        (&[3, 41, 32], refused),
        (&[3, 41, 59], refused),
        // Levels that are not listed: SCTP, netlink, TIPC.
        (&[3, 132, 1], refused),
        (&[3, 270, 1], refused),
        (&[3, 271, 1], refused),
    ];
    check("setsockopt", rows);
}

#[test]
fn the_shared_page_cache_is_not_dropped() {
    // POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED.
    let rows: &[(&[u64], Expected)] = &[
        (&[3, 0, 0, 3], Allowed),
        (&[3, 0, 0, 4], QuietlyDenied(0)),
        (&[3, 0, 0, 4 | HIGH], QuietlyDenied(0)),
    ];
    check("fadvise64", rows);
}

#[test]
fn datagrams_cannot_be_left_unfinished() {
    const MSG_MORE: u64 = 0x8000;
    const MSG_NOSIGNAL: u64 = 0x4000;
    for name in ["sendto", "sendmmsg"] {
        let rows: &[(&[u64], Expected)] = &[
            (&[3, 0, 1, MSG_NOSIGNAL], Allowed),
            (&[3, 0, 1, MSG_NOSIGNAL | MSG_MORE | HIGH], QuietlyDenied(EOPNOTSUPP)),
        ];
        check(name, rows);
    }
    check("sendmsg", &[(&[3, 0, 0], Allowed), (&[3, 0, MSG_MORE], QuietlyDenied(EOPNOTSUPP))]);
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
        // The name of a mapping.
        (&[0x5356_4d41], QuietlyDenied(EINVAL)),
        (&[0x5356_4d41 | HIGH], QuietlyDenied(EINVAL)),
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
        // F_SETLEASE; F_GETLEASE.
        (&[3, 1024], QuietlyDenied(EINVAL)),
        (&[3, 1025], Allowed),
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
fn cpus_and_time_slices_can_be_read_and_not_chosen() {
    for name in ["sched_setaffinity", "sched_setattr"] {
        check(name, &[(&[], Denied(EPERM))]);
    }
    for name in ["sched_getaffinity", "sched_getattr"] {
        check(name, &[(&[], Allowed)]);
    }
}

#[test]
fn numbers_outside_the_table_do_not_exist_and_share_few_names() {
    let profile = Profile::builtin();
    let judge = |arch, number| profile.verdict(arch, number, [0; 6]);
    let missing = |name| Verdict::Deny { name, errno: ENOSYS, quiet: false };
    assert_eq!(judge(Arch::X86_64, 400), missing("unknown"));
    assert_eq!(judge(Arch::X86_64, 0x3fff_ffff), missing("unknown"));
    assert_eq!(judge(Arch::X86_64, 0x4000_0000), missing("x32"));
    assert_eq!(judge(Arch::X86_64, u32::MAX), missing("x32"));
    assert_eq!(judge(Arch::Aarch64, 0x4000_0000), missing("unknown"));
}
