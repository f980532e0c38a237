//! A set of protections, as a bit mask.

use sandbox_core::Protection;

/// A set of protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionSet(u64);

impl ProtectionSet {
    /// All protections.
    pub fn all() -> Self {
        Self(Protection::ALL.iter().fold(0, |set, protection| set | bit(*protection)))
    }

    /// The set without one of them.
    #[must_use]
    pub fn without(self, protection: Protection) -> Self {
        Self(self.0 & !bit(protection))
    }

    /// Whether the set contains this one.
    pub fn has(self, protection: Protection) -> bool {
        self.0 & bit(protection) != 0
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(number: u64) -> Self {
        Self(number)
    }
}

fn bit(protection: Protection) -> u64 {
    1 << (protection as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_protection_keeps_the_others() {
        let protections = ProtectionSet::all().without(Protection::Seccomp);
        assert!(!protections.has(Protection::Seccomp));
        let others = Protection::ALL.iter().filter(|other| **other != Protection::Seccomp);
        assert!(others.into_iter().all(|other| protections.has(*other)));
        assert_eq!(ProtectionSet::from_bits(protections.to_bits()), protections);
    }
}
