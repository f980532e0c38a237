//! The resolved form of a profile: for each call, what allows it and how a denial is answered.

use std::collections::{BTreeMap, BTreeSet};

/// The rules of one architecture, by call number.
pub(super) type RuleTable = BTreeMap<u32, CallRules>;

/// All rules for one call.
#[derive(Debug, Default)]
pub(super) struct CallRules {
    /// The call is allowed if one of these matches.
    pub(super) allow: Vec<AllowRule>,
    /// The first of these that matches answers a call that is not allowed.
    pub(super) deny: Vec<DenyRule>,
}

#[derive(Debug)]
pub(super) struct AllowRule {
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug)]
pub(super) struct DenyRule {
    pub(super) conditions: Vec<Condition>,
    pub(super) answer: Answer,
}

/// How a denied call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) errno: i32,
    pub(super) reporting: Reporting,
}

/// Whether a denied call counts as a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reporting {
    Reported,
    Quiet,
}

impl Answer {
    /// For known calls without a deny entry.
    pub(super) const UNLISTED: Self = Self { errno: libc::EPERM, reporting: Reporting::Reported };

    /// For unknown numbers: the error of a kernel without the call.
    pub(super) const UNKNOWN: Self = Self { errno: libc::ENOSYS, reporting: Reporting::Reported };
}

/// How many bits of an argument register the kernel uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Width {
    /// The low 32 bits. The kernel ignores the others, and so does the filter: a rule that compared
    /// all 64 could be evaded by setting one of them.
    #[default]
    Int,
    /// All 64 bits.
    Long,
}

impl Width {
    /// The bits of the register that matter.
    pub(super) const fn bits(self) -> u64 {
        match self {
            Self::Int => 0xffff_ffff,
            Self::Long => u64::MAX,
        }
    }
}

/// A test of one argument: `(argument & mask)` is, or is not, in `values`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) argument: usize,
    /// Already narrowed to the width that the kernel uses.
    pub(super) mask: u64,
    pub(super) membership: Membership,
    pub(super) values: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    Is,
    IsNot,
}
