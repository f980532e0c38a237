//! What an agent is told to do: the order, with the system-call filter that it installs.

use sandbox_core::{BackendError, StagePlan};
use sandbox_linux::guest::order;
use sandbox_linux::rlimits::{self, Fallback};
use sandbox_linux::seccomp::{
    Affinity, Arch, DeniedAction, FilterOptions, NetworkKind, Profile, Program, Verdict,
};

use crate::failed;

/// The filter of one kind of containers, and what is said about it.
pub(crate) struct Orders {
    profile: Profile,
    options: FilterOptions,
    filter: Program,
    answers: Vec<u8>,
}

impl Orders {
    /// `denied` says what becomes of a call that the profile does not allow.
    pub(crate) fn new(denied: DeniedAction) -> Result<Self, BackendError> {
        let options =
            FilterOptions { denied, affinity: Affinity::Free, network: NetworkKind::None };
        let profile = Profile::builtin();
        let filter = profile
            .compile(Arch::NATIVE, &options)
            .map_err(|error| failed("compile the system-call filter", error))?;
        let answers = profile.answers(Arch::NATIVE);
        Ok(Self { profile, options, filter, answers })
    }

    /// The name of a call that was denied.
    pub(crate) fn name_of(&self, number: u32, arguments: [u64; 6]) -> String {
        match self.profile.verdict(Arch::NATIVE, &self.options, number, arguments) {
            Verdict::Deny { name, .. } => name.to_owned(),
            Verdict::Allow => format!("#{number}"),
        }
    }

    /// The order for a stage.
    pub(crate) fn write(&self, plan: &StagePlan) -> Vec<u8> {
        let none = Fallback { memory: false, pids: false };
        let rlimits = rlimits::encode(&plan.limits, plan.limits.disk(), none, true);
        let rlimits: Vec<(u64, u64)> = rlimits::numbered(&rlimits);
        order(plan, &rlimits, self.filter.as_bytes(), &self.answers)
    }
}
