//! Which walls stand, as one number that is cheap to send and to ask.

use sandbox_core::Protection;

/// A set of protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walls(u64);

impl Walls {
    /// Every wall.
    pub fn all() -> Self {
        Self(Protection::ALL.iter().fold(0, |set, protection| set | bit(*protection)))
    }

    /// The same without one.
    #[must_use]
    pub fn without(self, protection: Protection) -> Self {
        Self(self.0 & !bit(protection))
    }

    /// Whether this one stands.
    pub fn has(self, protection: Protection) -> bool {
        self.0 & bit(protection) != 0
    }

    pub(crate) fn to_number(self) -> u64 {
        self.0
    }

    pub(crate) fn from_number(number: u64) -> Self {
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
    fn one_wall_off_leaves_the_others() {
        let walls = Walls::all().without(Protection::Seccomp);
        assert!(!walls.has(Protection::Seccomp));
        let others = Protection::ALL.iter().filter(|wall| **wall != Protection::Seccomp);
        assert!(others.into_iter().all(|wall| walls.has(*wall)));
        assert_eq!(Walls::from_number(walls.to_number()), walls);
    }
}
