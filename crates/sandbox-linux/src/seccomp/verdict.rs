//! The decision about one call, directly from the profile's data.

use super::arch::Arch;
use super::profile::Profile;
use super::rules::{AllowRule, Answer, CallRules, Condition, Membership, Reporting};

/// The profile's decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel may execute it.
    Allow,
    /// The call is denied.
    Deny {
        /// The kernel's name of the call; `x32` or `unknown` for numbers outside the table.
        name: &'static str,
        /// The error number that the program gets.
        errno: i32,
        /// True if ordinary programs make this call, so that it is not counted as a violation.
        quiet: bool,
    },
}

impl Profile {
    /// Decides about the call `number` with `arguments` on `arch`.
    ///
    /// This uses the data and not the compiled program, so that each can be tested against the
    /// other.
    pub fn verdict(&self, arch: Arch, number: u32, arguments: [u64; 6]) -> Verdict {
        let (name, answer) = match arch.name_of(number) {
            None => (arch.name_of_unknown(number), Answer::UNKNOWN),
            Some(name) => match self.rules_of(arch).get(&number) {
                None => (name, Answer::UNLISTED),
                Some(rules) if rules.allows(arguments) => return Verdict::Allow,
                Some(rules) => (name, rules.answer(arguments)),
            },
        };
        Verdict::Deny { name, errno: answer.errno, quiet: answer.reporting == Reporting::Quiet }
    }
}

impl CallRules {
    fn allows(&self, arguments: [u64; 6]) -> bool {
        let holds = |rule: &AllowRule| all_hold(&rule.conditions, arguments);
        self.allow.iter().any(holds)
    }

    fn answer(&self, arguments: [u64; 6]) -> Answer {
        let speaks = self.deny.iter().find(|rule| all_hold(&rule.conditions, arguments));
        speaks.map_or(Answer::UNLISTED, |rule| rule.answer)
    }
}

fn all_hold(conditions: &[Condition], arguments: [u64; 6]) -> bool {
    conditions.iter().all(|condition| condition.holds(arguments))
}

impl Condition {
    /// Whether both test the same bits of the same argument.
    pub(super) fn has_subject_of(&self, other: &Condition) -> bool {
        (self.argument, self.mask) == (other.argument, other.mask)
    }

    fn holds(&self, arguments: [u64; 6]) -> bool {
        self.accepts(arguments[self.argument])
    }

    /// Whether it holds for this value of its argument.
    pub(super) fn accepts(&self, value: u64) -> bool {
        let listed = self.values.contains(&(value & self.mask));
        listed == (self.membership == Membership::Is)
    }
}
