//! The compiled program and the direct verdict must agree on every call.

use libc::{
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF,
};

use super::super::rules::Condition;
use super::super::{Arch, DeniedAction, Profile, Program, Verdict};
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
            [value, value ^ (1 << 32), value ^ (1 << 63), sign_extended, value | beside]
        })
        .collect()
}

/// The kernel's number for 32-bit x86, whose calls an x86_64 program can make.
const I386: u32 = 0x4000_0003;

fn numbers() -> impl Iterator<Item = u32> {
    let x32 = (0..600).map(|number| number | 0x4000_0000);
    (0..600).chain(x32).chain([1023, 1024, 0x3fff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX])
}

const ALL_ACTIONS: [DeniedAction; 2] = [DeniedAction::Notify, DeniedAction::Errno];

fn compile(profile: &Profile, arch: Arch, denied: DeniedAction) -> Program {
    profile.compile(arch, denied).expect("the shipped profile compiles")
}

#[test]
fn the_program_and_the_verdict_agree_on_every_call_with_every_argument_worth_trying() {
    let profile = Profile::builtin();
    let mut compared = 0_u32;
    for arch in Arch::ALL {
        let arguments: Vec<_> =
            numbers().map(|number| (number, argument_lists(&profile, arch, number))).collect();
        for denied in ALL_ACTIONS {
            let program = compile(&profile, arch, denied);
            for (number, arguments) in
                arguments.iter().flat_map(|(n, lists)| lists.iter().map(move |l| (*n, *l)))
            {
                let action =
                    interpreter::run(&program.instructions, number, arch.audit_number(), arguments);
                let verdict = profile.verdict(arch, number, arguments);
                let expected = expected_action(verdict, denied);
                assert_eq!(action, expected, "{arch:?} {number} {arguments:x?} {verdict:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "only {compared} calls were compared");
}

#[test]
fn a_call_of_another_architecture_kills_the_process() {
    let profile = Profile::builtin();
    for denied in ALL_ACTIONS {
        for arch in Arch::ALL {
            let program = compile(&profile, arch, denied);
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
        for denied in ALL_ACTIONS {
            let length = compile(&profile, arch, denied).len();
            #[expect(clippy::print_stdout, reason = "the figure is wanted in the test's output")]
            {
                println!("{} {:?}: {length} instructions", arch.name(), denied);
            }
            // Each takes most of a microsecond to install.
            assert!(length < 280, "{arch:?} {denied:?}: {length} instructions");
        }
    }
}
