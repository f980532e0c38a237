//! The file format of a profile, and the checks on each entry.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::arch::Arch;
use super::error::EntryProblem;
use super::rules::{Condition, Membership, Width};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    #[serde(default)]
    pub(super) allow: Vec<AllowEntry>,
    #[serde(default)]
    pub(super) deny: Vec<DenyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowEntry {
    pub(super) names: Vec<String>,
    reason: String,
    arch: Option<Vec<Arch>>,
    #[serde(default)]
    when: Vec<ConditionEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenyEntry {
    pub(super) names: Vec<String>,
    reason: String,
    arch: Option<Vec<Arch>>,
    #[serde(default)]
    when: Vec<ConditionEntry>,
    pub(super) errno: ErrnoName,
    #[serde(default)]
    pub(super) quiet: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionEntry {
    argument: usize,
    #[serde(default)]
    width: Width,
    mask: Option<u64>,
    is: Option<BTreeMap<String, u64>>,
    is_not: Option<BTreeMap<String, u64>>,
}

/// The error numbers that a denial may return. A short list, so that typos are found.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum ErrnoName {
    Eperm,
    Enosys,
    Eacces,
    Einval,
    Enomem,
    Eopnotsupp,
    Espipe,
    Eafnosupport,
    Eprotonosupport,
    Enoprotoopt,
    /// The call is skipped and returns 0.
    None,
}

impl ErrnoName {
    pub(super) const fn number(self) -> i32 {
        match self {
            Self::Eperm => libc::EPERM,
            Self::Enosys => libc::ENOSYS,
            Self::Eacces => libc::EACCES,
            Self::Einval => libc::EINVAL,
            Self::Enomem => libc::ENOMEM,
            Self::Eopnotsupp => libc::EOPNOTSUPP,
            Self::Espipe => libc::ESPIPE,
            Self::Eafnosupport => libc::EAFNOSUPPORT,
            Self::Eprotonosupport => libc::EPROTONOSUPPORT,
            Self::Enoprotoopt => libc::ENOPROTOOPT,
            Self::None => 0,
        }
    }
}

/// What both kinds of entries have: the calls and the conditions.
pub(super) struct Scope<'entry> {
    names: &'entry [String],
    reason: &'entry str,
    arch: Option<&'entry [Arch]>,
    when: &'entry [ConditionEntry],
}

impl AllowEntry {
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            names: &self.names,
            reason: &self.reason,
            arch: self.arch.as_deref(),
            when: &self.when,
        }
    }
}

impl DenyEntry {
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            names: &self.names,
            reason: &self.reason,
            arch: self.arch.as_deref(),
            when: &self.when,
        }
    }
}

impl Scope<'_> {
    /// Every call that the entry names, on each of its architectures, with its number there.
    pub(super) fn calls(&self) -> Result<Vec<(String, Arch, u32)>, EntryProblem> {
        if self.names.is_empty() {
            return Err(EntryProblem::NoNames);
        }
        if self.reason.trim().is_empty() {
            return Err(EntryProblem::NoReason);
        }
        let arches = self.arch.unwrap_or(&Arch::ALL);
        if arches.is_empty() {
            return Err(EntryProblem::NoArch);
        }
        let mut calls = Vec::new();
        for &arch in arches {
            for name in self.names {
                let number = arch.number_of(name).ok_or_else(|| EntryProblem::UnknownName {
                    name: name.clone(),
                    arch: arch.name(),
                })?;
                calls.push((name.clone(), arch, number));
            }
        }
        Ok(calls)
    }

    pub(super) fn conditions(&self) -> Result<Vec<Condition>, EntryProblem> {
        self.when.iter().map(ConditionEntry::resolve).collect()
    }
}

impl ConditionEntry {
    fn resolve(&self) -> Result<Condition, EntryProblem> {
        let argument = self.argument;
        if argument > 5 {
            return Err(EntryProblem::NoSuchArgument { argument });
        }
        let (membership, values) = match (&self.is, &self.is_not) {
            (Some(values), None) if !values.is_empty() => (Membership::Is, values),
            (None, Some(values)) if !values.is_empty() => (Membership::IsNot, values),
            _ => return Err(EntryProblem::NoValues { argument }),
        };
        let mask = self.mask.unwrap_or(u64::MAX) & self.width.bits();
        if let Some((value, _)) = values.iter().find(|(_, number)| *number & !mask != 0) {
            return Err(EntryProblem::ValueOutsideMask { value: value.clone(), argument });
        }
        Ok(Condition { argument, mask, membership, values: values.values().copied().collect() })
    }
}
