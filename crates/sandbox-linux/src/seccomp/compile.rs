//! Compiles a profile to a BPF program.
//!
//! The program checks, in this order: the architecture (another one kills the process, because its
//! numbers mean other calls), the number (a binary search, see `switch`), and for a few calls their
//! arguments. Since it is written from its end (see `assembler`), the functions below take the
//! labels to continue at as arguments and return the label where their own code starts.

use std::collections::BTreeSet;

use libc::{
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF,
};

use super::arch::Arch;
use super::assembler::{Assembler, Label, Test};
use super::error::ProfileError;
use super::profile::Profile;
use super::program::{MAX_INSTRUCTIONS, Program};
use super::rules::{Answer, CallRules, Condition, Membership, Reporting};
use super::switch::{Range, switch};

// Offsets in `struct seccomp_data` (linux/seccomp.h). Both our architectures are little-endian, so
// that the low half of an argument comes first.
const NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;

/// What answers a denied call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedAction {
    /// The supervisor, which also counts it. The kernel still answers quiet denials.
    Notify,
    /// The kernel, with the entry's error number. The call is not reported.
    Errno,
}

impl Profile {
    /// Builds the filter for one architecture.
    pub fn compile(&self, arch: Arch, denied: DeniedAction) -> Result<Program, ProfileError> {
        let mut compiler = Compiler { assembler: Assembler::default(), denied };
        let dispatch = compiler.dispatch(arch, self);
        compiler.entry(arch, dispatch);
        let instructions = compiler.assembler.finish();
        if instructions.len() > MAX_INSTRUCTIONS {
            let length = instructions.len();
            return Err(ProfileError::TooLong { length, limit: MAX_INSTRUCTIONS });
        }
        Ok(Program { instructions })
    }
}

struct Compiler {
    assembler: Assembler,
    denied: DeniedAction,
}

impl Compiler {
    /// Checks the architecture: a 32-bit call kills the process, since no ordinary x86_64 program
    /// makes one, and its number would be looked up in the wrong table.
    fn entry(&mut self, arch: Arch, dispatch: Label) -> Label {
        let kill = self.assembler.return_action(SECCOMP_RET_KILL_PROCESS);
        let number = self.assembler.load(NUMBER_OFFSET, dispatch);
        let pinned = self.assembler.branch(Test::Equals(arch.audit_number()), number, kill);
        self.assembler.load(ARCH_OFFSET, pinned)
    }

    /// Dispatches on the call number.
    ///
    /// The numbers of x32 lie far above the table and are treated as unknown, with the same error
    /// as from a kernel without x32: no extra instruction checks for them.
    fn dispatch(&mut self, arch: Arch, profile: &Profile) -> Label {
        let unlisted = self.denial(Answer::UNLISTED);
        let unknown = self.denial(Answer::UNKNOWN);
        let rules = profile.rules_of(arch);
        let mut ranges = Vec::new();
        for number in 0..=arch.last_number() {
            let target = match rules.get(&number) {
                Some(rules) => self.call(rules),
                None if arch.name_of(number).is_some() => unlisted,
                None => unknown,
            };
            ranges.push(Range { first: number, target });
        }
        ranges.push(Range { first: arch.last_number() + 1, target: unknown });
        switch(&mut self.assembler, &ranges)
    }

    /// The decision about one call: its allow rules in order, then its deny rules in order.
    fn call(&mut self, rules: &CallRules) -> Label {
        let allowed = self.assembler.return_action(SECCOMP_RET_ALLOW);
        let allow = rules.allow.iter();
        let mut list: Vec<_> = allow.map(|rule| Rule::new(&rule.conditions, allowed)).collect();
        for rule in &rules.deny {
            let denied = self.denial(rule.answer);
            list.push(Rule::new(&rule.conditions, denied));
        }
        list.push(Rule::new(&[], self.denial(Answer::UNLISTED)));
        self.decide(&list)
    }

    /// Continues at the target of the first rule whose conditions all hold. The last rule has none.
    ///
    /// All conditions on the first rule's first argument are decided at once: that argument is
    /// loaded and searched only once, however many rules test it.
    fn decide(&mut self, rules: &[Rule<'_>]) -> Label {
        let (first, rest) = rules.split_first().expect("the last rule has no conditions");
        let Some(subject) = first.conditions.first() else { return first.target };
        if subject.mask > u64::from(u32::MAX) {
            let otherwise = self.decide(rest);
            return self.conditions(&first.conditions, first.target, otherwise);
        }
        let conditions = rules.iter().flat_map(|rule| &rule.conditions);
        let values: BTreeSet<u64> = conditions
            .filter(|condition| condition.has_subject_of(subject))
            .flat_map(|condition| condition.values.iter().copied())
            .collect();
        let mut decided = Vec::new();
        let unlisted = self.decide_rest(rules, subject, None, &mut decided);
        let mut ranges = RangesAround::new(unlisted);
        for value in values {
            let target = self.decide_rest(rules, subject, Some(value), &mut decided);
            ranges.add(low(value), target);
        }
        self.half(argument_offset(subject.argument), low(subject.mask), &ranges.ranges)
    }

    /// Compiles what remains for one value of the subject, or for none of those that rules list.
    /// Values that leave the same rules share the code.
    fn decide_rest<'rules>(
        &mut self,
        rules: &[Rule<'rules>],
        subject: &Condition,
        value: Option<u64>,
        decided: &mut Vec<(Vec<Rule<'rules>>, Label)>,
    ) -> Label {
        let mut left: Vec<_> =
            rules.iter().filter_map(|rule| rule.within(subject, value)).collect();
        let settled = left.iter().position(|rule| rule.conditions.is_empty());
        left.truncate(settled.map_or(left.len(), |settled| settled + 1));
        if let Some((_, label)) = decided.iter().find(|(rules, _)| *rules == left) {
            return *label;
        }
        let label = self.decide(&left);
        decided.push((left, label));
        label
    }

    fn denial(&mut self, answer: Answer) -> Label {
        let action = match (self.denied, answer.reporting) {
            (DeniedAction::Notify, Reporting::Reported) => SECCOMP_RET_USER_NOTIF,
            (DeniedAction::Notify, Reporting::Quiet) | (DeniedAction::Errno, _) => {
                SECCOMP_RET_ERRNO | answer.errno.unsigned_abs()
            }
        };
        self.assembler.return_action(action)
    }

    /// Continues at `yes` if all conditions hold. Without conditions there is nothing to test.
    fn conditions(&mut self, conditions: &[&Condition], yes: Label, no: Label) -> Label {
        conditions.iter().rev().fold(yes, |yes, condition| self.condition(condition, yes, no))
    }

    fn condition(&mut self, condition: &Condition, yes: Label, no: Label) -> Label {
        let (listed, otherwise) = match condition.membership {
            Membership::Is => (yes, no),
            Membership::IsNot => (no, yes),
        };
        if listed == otherwise {
            return yes;
        }
        // The accumulator has 32 bits, so an argument is tested in halves: the high half leads to
        // the test of the low half. Halves that are masked off are not tested.
        let mut high_halves: Vec<u32> = condition.values.iter().map(|&value| high(value)).collect();
        high_halves.dedup();
        let mut high_ranges = RangesAround::new(otherwise);
        for high_half in high_halves {
            let mut low_ranges = RangesAround::new(otherwise);
            for &value in condition.values.iter().filter(|&&value| high(value) == high_half) {
                low_ranges.add(low(value), listed);
            }
            let offset = argument_offset(condition.argument);
            let judge_low = self.half(offset, low(condition.mask), &low_ranges.ranges);
            high_ranges.add(high_half, judge_low);
        }
        let offset = argument_offset(condition.argument) + 4;
        self.half(offset, high(condition.mask), &high_ranges.ranges)
    }

    /// Loads half of an argument, masks it, and dispatches on its value.
    fn half(&mut self, offset: u32, mask: u32, ranges: &[Range]) -> Label {
        if mask == 0 {
            // The rest is always zero, and the first range contains zero.
            return ranges[0].target;
        }
        let mut judge = switch(&mut self.assembler, ranges);
        if mask != u32::MAX {
            judge = self.assembler.mask(mask, judge);
        }
        self.assembler.load(offset, judge)
    }
}

/// What applies if all the conditions hold.
#[derive(PartialEq)]
struct Rule<'profile> {
    conditions: Vec<&'profile Condition>,
    target: Label,
}

impl<'profile> Rule<'profile> {
    fn new(conditions: &'profile [Condition], target: Label) -> Self {
        Self { conditions: conditions.iter().collect(), target }
    }

    /// What remains of the rule for one value of the subject, or for none that any rule lists;
    /// `None` if it cannot match then.
    fn within(&self, subject: &Condition, value: Option<u64>) -> Option<Self> {
        let (settled, open): (Vec<&Condition>, Vec<&Condition>) =
            self.conditions.iter().partition(|condition| condition.has_subject_of(subject));
        let holds = settled.iter().all(|condition| match value {
            Some(value) => condition.accepts(value),
            None => condition.membership == Membership::IsNot,
        });
        holds.then_some(Self { conditions: open, target: self.target })
    }
}

/// Ranges with one target, except for single values that are added in ascending order.
struct RangesAround {
    ranges: Vec<Range>,
    otherwise: Label,
}

impl RangesAround {
    fn new(otherwise: Label) -> Self {
        Self { ranges: vec![Range { first: 0, target: otherwise }], otherwise }
    }

    fn add(&mut self, value: u32, target: Label) {
        // Replace the range that continues from the previous value if this value directly follows
        // it.
        if self.ranges.last().is_some_and(|range| range.first == value) {
            self.ranges.pop();
        }
        self.ranges.push(Range { first: value, target });
        if let Some(next) = value.checked_add(1) {
            self.ranges.push(Range { first: next, target: self.otherwise });
        }
    }
}

fn argument_offset(argument: usize) -> u32 {
    ARGUMENTS_OFFSET + 8 * u32::try_from(argument).expect("there are six arguments")
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
const fn low(value: u64) -> u32 {
    value as u32
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}
