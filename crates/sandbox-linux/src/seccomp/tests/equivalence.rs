//! The compiled program and the direct verdict must agree on every call.

use libc::{
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF,
};

use super::super::rules::Condition;
use super::super::{
    Affinity, Arch, DeniedAction, FilterOptions, NetworkKind, Profile, Program, Verdict,
};
use super::interpreter;

/// What the program should return, if the verdict is right.
fn expected_action(verdict: Verdict, denied: DeniedAction) -> u32 {
    match (verdict, denied) {
        (Verdict::Allow, _) => SECCOMP_RET_ALLOW,
        (Verdict::Deny { quiet: false, .. }, DeniedAction::Notify) => SECCOMP_RET_USER_NOTIF,
        (Verdict::Deny { errno, .. }, _) => SECCOMP_RET_ERRNO | errno.cast_unsigned(),
    }
}

/// Argument lists worth trying: for each condition of the call, every listed value and its
/// neighbours, alone and with bits set above and beside those that count, together with every value
/// worth trying of the call's other conditions.
pub(super) fn argument_lists(profile: &Profile, arch: Arch, number: u32) -> Vec<[u64; 6]> {
    let mut choices: [Vec<u64>; 6] = std::array::from_fn(|_| vec![0, u64::MAX]);
    if let Some(rules) = profile.rules_of(arch).get(&number) {
        let allow = rules.allow.iter().flat_map(|rule| &rule.conditions);
        let deny = rules.deny.iter().flat_map(|rule| &rule.conditions);
        for condition in allow.chain(deny) {
            choices[condition.argument].extend(values_around(condition));
        }
    }
    let mut lists = vec![[0; 6]];
    for (index, values) in choices.iter_mut().enumerate() {
        values.sort_unstable();
        values.dedup();
        if values.len() == 2 {
            continue;
        }
        lists = lists
            .iter()
            .flat_map(|list| {
                values.iter().map(move |&value| {
                    let mut list = *list;
                    list[index] = value;
                    list
                })
            })
            .collect();
    }
    lists.push([u64::MAX; 6]);
    lists
}

fn values_around(condition: &Condition) -> Vec<u64> {
    let beside = !condition.mask & 0xffff_ffff;
    let listed = condition.values.iter();
    listed
        .flat_map(|&value| [value, value.wrapping_add(1), value.wrapping_sub(1)])
        .flat_map(|value| {
            let sign_extended = value | 0xffff_ffff_0000_0000;
            [
                value,
                value ^ (1 << 32),
                value ^ (1 << 63),
                sign_extended,
                value | beside,
            ]
        })
        .collect()
}

/// The kernel's number for 32-bit x86, whose calls an x86_64 program can make.
const I386: u32 = 0x4000_0003;

fn numbers() -> impl Iterator<Item = u32> {
    let x32 = (0..600).map(|number| number | 0x4000_0000);
    (0..600)
        .chain(x32)
        .chain([1023, 1024, 0x3fff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX])
}

fn all_options() -> impl Iterator<Item = FilterOptions> {
    [DeniedAction::Notify, DeniedAction::Errno]
        .into_iter()
        .flat_map(|denied| {
            [Affinity::Free, Affinity::Fixed].map(|affinity| FilterOptions {
                denied,
                affinity,
                network: NetworkKind::None,
            })
        })
}

fn compile(profile: &Profile, arch: Arch, options: FilterOptions) -> Program {
    profile
        .compile(arch, &options)
        .expect("the shipped profile compiles")
}

#[test]
fn the_program_and_the_verdict_agree_on_every_call_with_every_argument_worth_trying() {
    let profile = Profile::builtin();
    let mut compared = 0_u32;
    for arch in Arch::ALL {
        let arguments: Vec<_> = numbers()
            .map(|number| (number, argument_lists(&profile, arch, number)))
            .collect();
        for options in all_options() {
            let program = compile(&profile, arch, options);
            for (number, arguments) in arguments
                .iter()
                .flat_map(|(n, lists)| lists.iter().map(move |l| (*n, *l)))
            {
                let action = interpreter::run(
                    &program.instructions,
                    number,
                    arch.audit_number(),
                    arguments,
                );
                let verdict = profile.verdict(arch, &options, number, arguments);
                let expected = expected_action(verdict, options.denied);
                assert_eq!(
                    action, expected,
                    "{arch:?} {number} {arguments:x?} {verdict:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "only {compared} calls were compared");
}

#[test]
fn a_call_of_another_architecture_kills_the_process() {
    let profile = Profile::builtin();
    for options in all_options() {
        for arch in Arch::ALL {
            let program = compile(&profile, arch, options);
            let others = Arch::ALL.into_iter().filter(|other| *other != arch);
            for other in others.map(Arch::audit_number).chain([I386, 0, u32::MAX]) {
                for number in numbers() {
                    let action = interpreter::run(&program.instructions, number, other, [0; 6]);
                    assert_eq!(action, SECCOMP_RET_KILL_PROCESS, "{arch:?} {number}");
                }
            }
        }
    }
}

#[test]
fn the_programs_are_short() {
    let profile = Profile::builtin();
    for arch in Arch::ALL {
        for options in all_options() {
            let length = compile(&profile, arch, options).len();
            #[expect(
                clippy::print_stdout,
                reason = "the figure is wanted in the test's output"
            )]
            {
                println!(
                    "{} {:?}: {length} instructions",
                    arch.name(),
                    options.denied
                );
            }
            assert!(length < 260, "{arch:?} {options:?}: {length} instructions");
        }
    }
}

/// A few calls whose answer matters most, written out by hand, so that a mistake in the data or in
/// the reading of it cannot hide behind two roads that agree.
#[test]
fn the_builtin_profile_answers_known_calls_as_intended() {
    let profile = Profile::builtin();
    let options = super::options(DeniedAction::Notify);
    let deny = |name, errno, quiet| Verdict::Deny { name, errno, quiet };
    let (allow, high) = (Verdict::Allow, 0xdead_beef_0000_0000_u64);
    let rows: &[(&str, &[u64], Verdict)] = &[
        ("read", &[], allow),
        ("ptrace", &[], deny("ptrace", libc::EPERM, false)),
        ("clone3", &[], deny("clone3", libc::ENOSYS, true)),
        (
            "io_uring_setup",
            &[],
            deny("io_uring_setup", libc::ENOSYS, true),
        ),
        ("clone", &[0x003d_0f00], allow),
        ("clone", &[0x003d_0f00 | high], allow),
        ("clone", &[0x91], allow),
        ("clone", &[0x1000_0011], deny("clone", libc::EPERM, false)),
        (
            "clone",
            &[0x0002_0011 | high],
            deny("clone", libc::EPERM, false),
        ),
        ("socket", &[1, 0x80801], allow),
        ("socket", &[2, 1, 6], allow),
        ("socket", &[2 | high, 1 | high, 6 | high], allow),
        ("socket", &[16, 0x80003, 0], allow),
        ("socket", &[16, 3, 9], deny("socket", libc::EPERM, false)),
        ("socket", &[2, 3, 1], deny("socket", libc::EPERM, false)),
        ("socket", &[2, 10, 0], deny("socket", libc::EPERM, false)),
        ("socket", &[2, 5, 132], deny("socket", libc::EPERM, false)),
        (
            "socket",
            &[2, 1, 262],
            deny("socket", libc::EPROTONOSUPPORT, true),
        ),
        (
            "socket",
            &[40, 1, 0],
            deny("socket", libc::EAFNOSUPPORT, false),
        ),
        (
            "socket",
            &[0x28 | high, 1, 0],
            deny("socket", libc::EAFNOSUPPORT, false),
        ),
        ("socketpair", &[1, 1], allow),
        (
            "socketpair",
            &[2, 1],
            deny("socketpair", libc::EAFNOSUPPORT, false),
        ),
        ("ioctl", &[0, 0x5413], allow),
        ("ioctl", &[0, 0x5412], deny("ioctl", libc::EPERM, false)),
        (
            "ioctl",
            &[0, 0x5412 | high],
            deny("ioctl", libc::EPERM, false),
        ),
        (
            "ioctl",
            &[0, 0x541c | 1 << 32],
            deny("ioctl", libc::EPERM, false),
        ),
        ("personality", &[0xffff_ffff], allow),
        ("personality", &[u64::MAX], allow),
        ("personality", &[0x0004_0000], allow),
        (
            "personality",
            &[0x0040_0000],
            deny("personality", libc::EINVAL, false),
        ),
        ("prctl", &[15], allow),
        ("prctl", &[15 | high], allow),
        ("prctl", &[28], deny("prctl", libc::EINVAL, false)),
        ("prctl", &[47, 1], allow),
        ("prctl", &[47, 1 | high], deny("prctl", libc::EINVAL, false)),
        ("prctl", &[47, 2], deny("prctl", libc::EINVAL, false)),
        ("seccomp", &[1, 0], allow),
        ("seccomp", &[1, 17], allow),
        ("seccomp", &[1, 8], deny("seccomp", libc::EINVAL, false)),
        (
            "seccomp",
            &[1 | high, 9 | high],
            deny("seccomp", libc::EINVAL, false),
        ),
        ("seccomp", &[3, 0], deny("seccomp", libc::EINVAL, false)),
        ("mknodat", &[0, 0, 0x11a4], allow),
        (
            "mknodat",
            &[0, 0, 0x21a4],
            deny("mknodat", libc::EPERM, false),
        ),
        (
            "mknodat",
            &[0, 0, 0x1_0000_21a4],
            deny("mknodat", libc::EPERM, false),
        ),
        ("sched_setaffinity", &[], allow),
        ("landlock_restrict_self", &[], allow),
    ];
    for arch in Arch::ALL {
        for (name, given, expected) in rows {
            let number = arch.number_of(name).expect("the call exists on both");
            let mut arguments = [0; 6];
            arguments[..given.len()].copy_from_slice(given);
            let verdict = profile.verdict(arch, &options, number, arguments);
            assert_eq!(verdict, *expected, "{arch:?} {name} {given:x?}");
        }
    }
    let unknown = deny("unknown", libc::ENOSYS, false);
    assert_eq!(
        profile.verdict(Arch::X86_64, &options, 400, [0; 6]),
        unknown
    );
    let x32 = deny("x32", libc::ENOSYS, false);
    assert_eq!(
        profile.verdict(Arch::X86_64, &options, 0x4000_0000, [0; 6]),
        x32
    );
    assert_eq!(
        profile.verdict(Arch::Aarch64, &options, 0x4000_0000, [0; 6]),
        unknown
    );
    let fixed = FilterOptions {
        affinity: Affinity::Fixed,
        ..options
    };
    let number = Arch::X86_64
        .number_of("sched_setaffinity")
        .expect("it exists");
    let refused = deny("sched_setaffinity", libc::EPERM, false);
    assert_eq!(
        profile.verdict(Arch::X86_64, &fixed, number, [0; 6]),
        refused
    );
}
