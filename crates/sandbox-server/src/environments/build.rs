use chrono::{DateTime, Utc};
use sandbox::{CancelToken, Environment};
use sandbox_api::Problem;
use tokio::sync::watch;

use super::Wanted;

/// A build that runs or failed.
pub(crate) struct Build {
    pub(crate) wanted: Wanted,
    pub(crate) begun_at: DateTime<Utc>,
    progress: watch::Sender<Progress>,
    token: CancelToken,
    is_cancelled: watch::Sender<bool>,
}

/// The state of a build.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    /// It waits in the queue or runs.
    Building,
    Built(Box<Environment>),
    Failed(Problem),
}

impl Build {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            begun_at: Utc::now(),
            progress: watch::Sender::new(Progress::Building),
            token: CancelToken::new(),
            is_cancelled: watch::Sender::new(false),
        }
    }

    /// Its state.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Waits until it ends.
    pub(crate) async fn ended(&self) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as this does.
        let _ = progress.wait_for(|progress| !matches!(progress, Progress::Building)).await;
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(*self.progress.borrow(), Progress::Failed(_))
    }

    pub(super) fn end(&self, result: Result<Environment, Problem>) {
        let end = result.map_or_else(Progress::Failed, |built| Progress::Built(Box::new(built)));
        self.progress.send_replace(end);
    }

    pub(super) fn cancel(&self) {
        self.token.cancel();
        self.is_cancelled.send_replace(true);
    }

    /// Cancels the sandboxes of the build.
    pub(super) fn token(&self) -> CancelToken {
        self.token.clone()
    }

    /// Waits until it is cancelled.
    pub(super) async fn cancelled(&self) {
        let mut is_cancelled = self.is_cancelled.subscribe();
        let _ = is_cancelled.wait_for(|is_cancelled| *is_cancelled).await;
    }
}
