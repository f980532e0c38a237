//! The walls that this program builds itself, with namespaces, cgroups, seccomp and Landlock.

use std::collections::BTreeSet;

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, Observer, Protection,
    StageOutcome, StagePlan,
};

/// How the native backend is set up.
#[derive(Clone, Debug)]
pub struct NativeOptions {
    /// Walls to leave out. Only tests and `doctor --attack` have a reason to name any: they show that
    /// an attack succeeds without the wall that stops it.
    pub without: BTreeSet<Protection>,
    /// How many prepared slots to keep ready.
    pub spare_slots: usize,
}

/// The native backend.
#[derive(Debug)]
pub struct NativeBackend {}

impl NativeBackend {
    /// Probes the host and starts the launcher.
    pub fn start(_options: NativeOptions) -> Result<Self, BackendError> {
        Ok(Self {})
    }
}

impl Backend for NativeBackend {
    fn isolation(&self) -> Isolation {
        Isolation::Native
    }

    fn capabilities(&self) -> &Capabilities {
        todo!()
    }

    fn run(
        &self,
        _plan: &StagePlan,
        _observer: &mut dyn Observer,
        _cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        todo!()
    }
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            without: BTreeSet::new(),
            spare_slots: 1,
        }
    }
}
