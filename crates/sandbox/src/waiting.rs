//! A backend that holds its caller's thread up from beginning to end, for callers whose threads have other work.

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Isolation, MissingProtection, Observer,
    PoolFigures, StageOutcome, StagePlan,
};

/// Has each stage carried out by what the caller gave for that.
pub(crate) struct Waiting<B> {
    pub(crate) backend: B,
    pub(crate) waits: fn(&mut dyn FnMut()),
}

impl<B: Backend> Backend for Waiting<B> {
    fn isolation(&self) -> Isolation {
        self.backend.isolation()
    }

    fn capabilities(&self) -> &Capabilities {
        self.backend.capabilities()
    }

    fn lacks_here(&self) -> &[MissingProtection] {
        self.backend.lacks_here()
    }

    fn pool(&self) -> Option<PoolFigures> {
        self.backend.pool()
    }

    fn starts_runtimes_ahead(&self) -> bool {
        self.backend.starts_runtimes_ahead()
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let mut outcome = None;
        (self.waits)(&mut || outcome = Some(self.backend.run(plan, observer, cancel)));
        outcome.expect("whoever waits calls what there is to wait for")
    }
}
