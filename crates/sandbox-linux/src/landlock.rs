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

/// Prepares the rules in a process that already sees the sandbox's root.
///
/// Reading and executing is free, because everything there was put there to be read; writing only
/// where the program has files of its own.
pub(crate) fn prepare(writable: &[&str], devices: &[&str]) -> Result<RulesetCreated, StepError> {
    let mut rules = new_ruleset().map_err(step_error)?;
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut allow = |path: &str, access| {
        rules = rules
            .take()
            .map(|rules| add(rules, path, access))
            .transpose()?;
        Ok::<(), StepError>(())
    };
    allow("/", read)?;
    // Names of threads and the like are set through files of the process itself.
    allow("/proc", read | AccessFs::WriteFile)?;
    for path in writable {
        allow(path, all)?;
    }
    for path in devices {
        allow(path, device)?;
    }
    rules.ok_or_else(|| StepError {
        step: "build the Landlock rules".into(),
        cause: Errno::INVAL,
    })
}

/// Puts the rules over this process for good.
pub(crate) fn restrict(rules: RulesetCreated) -> Result<(), StepError> {
    rules.restrict_self().map(|_| ()).map_err(step_error)
}

fn new_ruleset() -> Result<Option<RulesetCreated>, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
        .map(Some)
}

fn add(
    rules: RulesetCreated,
    path: &str,
    access: impl Into<landlock::BitFlags<AccessFs>>,
) -> Result<RulesetCreated, StepError> {
    let place: OwnedFd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .at(&format!("open {path} for a Landlock rule"))?;
    rules
        .add_rule(PathBeneath::new(place, access))
        .map_err(step_error)
}

fn step_error(error: RulesetError) -> StepError {
    let number: landlock::Errno = error.into();
    StepError {
        step: "apply the Landlock rules".into(),
        cause: Errno::from_raw_os_error(*number),
    }
}
