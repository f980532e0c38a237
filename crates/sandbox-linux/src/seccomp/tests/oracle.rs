//! Another compiler (seccompiler) must allow exactly the same calls.

use std::collections::BTreeMap;

use libc::{SECCOMP_RET_ALLOW, sock_filter};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::super::rules::{Condition, Membership};
use super::super::{Arch, DeniedAction, Profile};
use super::equivalence::argument_lists;
use super::interpreter;

/// The allow half of the profile, as the other compiler's program.
fn oracle(profile: &Profile, arch: Arch) -> Vec<sock_filter> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (number, call) in profile.rules_of(arch) {
        let conjunctions: Vec<_> =
            call.allow.iter().flat_map(|rule| expand(&rule.conditions)).collect();
        if conjunctions.is_empty() {
            continue;
        }
        // There, no rules at all means that the call is matched whatever its arguments.
        let with_conditions = conjunctions.into_iter().filter(|list| !list.is_empty());
        let with_conditions =
            with_conditions.map(|list| SeccompRule::new(list).expect("not empty"));
        rules.insert(i64::from(*number), with_conditions.collect());
    }
    let target = match arch {
        Arch::X86_64 => TargetArch::x86_64,
        Arch::Aarch64 => TargetArch::aarch64,
    };
    let errno = SeccompAction::Errno(1);
    let filter = SeccompFilter::new(rules, errno, SeccompAction::Allow, target);
    let program: BpfProgram = filter.expect("valid").try_into().expect("short enough");
    program.iter().map(|i| sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect()
}

/// A condition there has one value, so that a list of values becomes several rules.
fn expand(conditions: &[Condition]) -> Vec<Vec<SeccompCondition>> {
    let mut conjunctions = vec![Vec::new()];
    for condition in conditions {
        let length = if condition.mask > 0xffff_ffff {
            SeccompCmpArgLen::Qword
        } else {
            SeccompCmpArgLen::Dword
        };
        let argument = u8::try_from(condition.argument).expect("there are six arguments");
        let compare = |operator, value| {
            SeccompCondition::new(argument, length.clone(), operator, value).expect("valid")
        };
        conjunctions = match condition.membership {
            Membership::Is => {
                let alternatives = condition.values.iter().map(|&value| {
                    let equal = compare(SeccompCmpOp::MaskedEq(condition.mask), value);
                    conjunctions.iter().map(move |list| {
                        let mut list = list.clone();
                        list.push(equal.clone());
                        list
                    })
                });
                alternatives.flatten().collect()
            }
            Membership::IsNot => {
                let differs = condition.values.iter().map(|&v| compare(SeccompCmpOp::Ne, v));
                let differs: Vec<_> = differs.collect();
                for list in &mut conjunctions {
                    list.extend(differs.iter().cloned());
                }
                conjunctions
            }
        };
    }
    conjunctions
}

#[test]
fn another_compiler_allows_exactly_the_same_calls() {
    let profile = Profile::builtin();
    for arch in Arch::ALL {
        let ours =
            profile.compile(arch, DeniedAction::Errno).expect("the shipped profile compiles");
        let theirs = oracle(&profile, arch);
        assert!(theirs.len() > ours.len(), "ours should be the shorter one");
        for number in (0..600).chain([0x4000_0000, 0x4000_0001, u32::MAX]) {
            for arguments in argument_lists(&profile, arch, number) {
                let allows = |program: &[sock_filter]| {
                    let action = interpreter::run(program, number, arch.audit_number(), arguments);
                    action == SECCOMP_RET_ALLOW
                };
                assert_eq!(
                    allows(&ours.instructions),
                    allows(&theirs),
                    "{arch:?} {number} {arguments:x?}"
                );
            }
        }
    }
}
