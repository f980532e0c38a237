//! File access ruled once more, by path, after the mounts: if a mount were wrong, this still holds.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::step::{AtStep, StepError};

/// The newest rules we know; an older kernel takes the part it has.
const NEWEST: ABI = ABI::V6;

/// Which version of Landlock this kernel has; 0 for none.
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

/// Rules in the making: everything may be read and executed, because everything in the root was put
/// there to be read; writing only where it is allowed.
pub(crate) struct Rules(Option<RulesetCreated>);

impl Rules {
    /// Rules that allow nothing yet.
    pub(crate) fn new() -> Result<Self, StepError> {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create);
        rules.map(|rules| Self(Some(rules))).map_err(step_error)
    }

    /// Allows reading and executing below a path.
    pub(crate) fn allow_reading(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::from_read(NEWEST))
    }

    /// Allows everything below a path.
    pub(crate) fn allow_writing(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::from_all(NEWEST))
    }

    /// Allows reading and writing a device, but no control requests: those lead to its driver's code.
    pub(crate) fn allow_device(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::ReadFile | AccessFs::WriteFile)
    }

    /// Allows reading and writing terminals, and the requests that set their size and modes. Those that
    /// reach further are refused by the filter.
    pub(crate) fn allow_terminals(&mut self, path: &str) -> Result<(), StepError> {
        self.allow(path, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev)
    }

    fn allow(
        &mut self,
        path: &str,
        access: impl Into<landlock::BitFlags<AccessFs>>,
    ) -> Result<(), StepError> {
        let place: OwnedFd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .at(&format!("open {path} for a Landlock rule"))?;
        let rules = self.0.take().ok_or(Errno::INVAL).at("build the Landlock rules")?;
        self.0 = Some(rules.add_rule(PathBeneath::new(place, access)).map_err(step_error)?);
        Ok(())
    }

    /// The same rules once more: what is added to the one later is not missing in the other.
    pub(crate) fn share(&self) -> Result<Self, StepError> {
        let rules = self.0.as_ref().ok_or(Errno::INVAL).at("build the Landlock rules")?;
        rules.try_clone().map(|rules| Self(Some(rules))).at("share the Landlock rules")
    }

    /// The rules as a descriptor, for another process to put over itself.
    pub(crate) fn into_fd(self) -> Option<OwnedFd> {
        self.0.and_then(Into::into)
    }

    /// Puts the rules over this process for good.
    pub(crate) fn restrict(self) -> Result<(), StepError> {
        let rules = self.0.ok_or(Errno::INVAL).at("build the Landlock rules")?;
        rules.restrict_self().map(|_| ()).map_err(step_error)
    }
}

fn step_error(error: RulesetError) -> StepError {
    let number: landlock::Errno = error.into();
    StepError { step: "apply the Landlock rules".into(), cause: Errno::from_raw_os_error(*number) }
}
