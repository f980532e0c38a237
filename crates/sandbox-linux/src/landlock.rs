//! Landlock: restricts file access by path, in case a mount is wrong.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use sandbox_core::Protection;

use crate::protection_set::ProtectionSet;
use crate::step::{AtStep, StepError};

/// The newest supported ABI version; an older kernel applies a part.
const MAX_ABI: ABI = ABI::V6;

/// A protection that requires a version of Landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The protection.
    pub protection: Protection,
    /// The first ABI version that provides it.
    pub version: u32,
    /// The first Linux release with that version.
    pub kernel: &'static str,
    /// What enforces the same if it is missing; `None` if nothing does.
    pub instead: Option<&'static str>,
}

/// Protections by Landlock, and the ABI versions that they require.
///
/// Version 2 only permits more: version 1 denies all moves between directories.
pub const PARTS: &[Part] = &[
    Part { protection: Protection::Landlock, version: 1, kernel: "5.13", instead: None },
    Part {
        protection: Protection::LandlockTruncate,
        version: 3,
        kernel: "6.2",
        instead: Some("read-only mounts"),
    },
    Part {
        protection: Protection::LandlockIoctl,
        version: 5,
        kernel: "6.10",
        instead: Some("the few devices and the system-call filter"),
    },
    Part {
        protection: Protection::LandlockScope,
        version: 6,
        kernel: "6.12",
        instead: Some("the process and network namespaces"),
    },
];

/// Protections that a kernel with this version lacks.
pub fn missing_from(version: u32) -> impl Iterator<Item = &'static Part> {
    PARTS.iter().filter(move |part| part.version > version)
}

/// The kernel's Landlock ABI version; 0 for none.
pub fn version() -> u32 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag, a null pointer and size 0 the call only tells a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// A ruleset under construction: everything in the root may be read and executed; writing is
/// allowed where rules say so.
pub(crate) struct Rules {
    ruleset: Option<RulesetCreated>,
    /// The access rights that it handles.
    handled: BitFlags<AccessFs>,
}

impl Rules {
    /// Creates a ruleset that allows nothing yet, with the requested parts of Landlock.
    pub(crate) fn new(protections: ProtectionSet) -> Result<Self, StepError> {
        let mut handled = AccessFs::from_all(MAX_ABI);
        if !protections.has(Protection::LandlockTruncate) {
            handled.remove(AccessFs::Truncate);
        }
        if !protections.has(Protection::LandlockIoctl) {
            handled.remove(AccessFs::IoctlDev);
        }
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(handled)
            .and_then(|rules| {
                if protections.has(Protection::LandlockScope) {
                    rules.scope(Scope::from_all(MAX_ABI))
                } else {
                    Ok(rules)
                }
            })
            .and_then(Ruleset::create);
        rules.map(|ruleset| Self { ruleset: Some(ruleset), handled }).map_err(step_error)
    }

    /// Allows reading and executing below a path.
    pub(crate) fn allow_reading(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::from_read(MAX_ABI))
    }

    /// Allows all access below a path.
    pub(crate) fn allow_writing(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::from_all(MAX_ABI))
    }

    /// Allows reading and writing a device, but no ioctl requests, which reach driver code.
    pub(crate) fn allow_device(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::ReadFile | AccessFs::WriteFile)
    }

    /// Allows reading and writing terminals, and requests that set their size and modes. The filter
    /// denies further-reaching requests.
    pub(crate) fn allow_terminals(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)
    }

    fn allow(
        &mut self,
        path: &str,
        access: impl Into<BitFlags<AccessFs>>,
    ) -> Result<(), StepError> {
        let place: OwnedFd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .at(&format!("open {path} for a Landlock rule"))?;
        let rules = self.ruleset.take().ok_or(Errno::INVAL).at("build the Landlock rules")?;
        let access = access.into() & self.handled;
        self.ruleset = Some(rules.add_rule(PathBeneath::new(place, access)).map_err(step_error)?);
        Ok(())
    }

    /// A copy that shares the ruleset: rules added to one apply to the other.
    pub(crate) fn share(&self) -> Result<Self, StepError> {
        let rules = self.ruleset.as_ref().ok_or(Errno::INVAL).at("build the Landlock rules")?;
        let rules = rules.try_clone().at("share the Landlock rules")?;
        Ok(Self { ruleset: Some(rules), handled: self.handled })
    }

    /// The ruleset as a descriptor, for another process to apply.
    pub(crate) fn into_fd(self) -> Option<OwnedFd> {
        self.ruleset.and_then(Into::into)
    }

    /// Applies the ruleset to this process for good.
    pub(crate) fn restrict(self) -> Result<(), StepError> {
        let rules = self.ruleset.ok_or(Errno::INVAL).at("build the Landlock rules")?;
        rules.restrict_self().map(|_| ()).map_err(step_error)
    }
}

fn step_error(error: RulesetError) -> StepError {
    let number: landlock::Errno = error.into();
    StepError { step: "apply the Landlock rules".into(), cause: Errno::from_raw_os_error(*number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_landlock_lacks_what_came_later() {
        use Protection::{Landlock, LandlockIoctl, LandlockScope, LandlockTruncate};
        for (versions, lacks) in [
            (0..=0, &[Landlock, LandlockTruncate, LandlockIoctl, LandlockScope][..]),
            (1..=2, &[LandlockTruncate, LandlockIoctl, LandlockScope]),
            (3..=4, &[LandlockIoctl, LandlockScope]),
            (5..=5, &[LandlockScope]),
            (6..=9, &[]),
        ] {
            for version in versions {
                let missing: Vec<_> = missing_from(version).map(|part| part.protection).collect();
                assert_eq!(missing, lacks, "version {version}");
            }
        }
    }

    #[test]
    fn what_refuses_nothing_has_something_in_its_place() {
        for part in PARTS {
            assert_eq!(part.instead.is_some(), part.protection.is_defense_in_depth(), "{part:?}");
        }
    }
}
