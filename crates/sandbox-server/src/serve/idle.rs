//! Stops a server that nobody uses.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::work::Work;

/// The number of open connections.
#[derive(Clone, Default)]
pub(super) struct OpenConnections(Arc<watch::Sender<usize>>);

/// The right to have a connection, which counts as open until this is dropped.
pub(super) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    open: OpenConnections,
}

impl OpenConnections {
    /// Counts a connection with this permit.
    pub(super) fn open(&self, permit: OwnedSemaphorePermit) -> ConnectionPermit {
        self.0.send_modify(|open| *open += 1);
        ConnectionPermit { _permit: permit, open: self.clone() }
    }

    /// Waits until no connection was open for this long and no execution is queued or running.
    pub(super) async fn idle_for(&self, duration: Duration, work: &Work) {
        let mut open = self.0.subscribe();
        loop {
            // The sender lives as long as this value, so waiting cannot fail.
            let _ = open.wait_for(|open| *open == 0).await;
            let opened = async {
                let _ = open.changed().await;
            };
            if tokio::time::timeout(duration, opened).await.is_err() && work.is_idle().await {
                return;
            }
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.0.send_modify(|open| *open -= 1);
    }
}
