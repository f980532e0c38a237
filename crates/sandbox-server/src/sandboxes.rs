//! What executions run in: a sandbox for each isolation that the server's owner permits.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use sandbox::{Isolation, PoolStats, Sandbox, SandboxBuilder};

/// The sandboxes of a server. What is queued, counted and kept, they have in common.
pub(crate) struct Sandboxes {
    /// What a client gets who leaves the choice to us.
    preferred: Arc<Sandbox>,
    permitted: Vec<Arc<Sandbox>>,
}

impl Sandboxes {
    /// Starts all that the configuration permits. One that cannot be had here is a mistake in it, and nothing to find out
    /// from failing executions. `set_up` begins each of them.
    pub(crate) fn start(
        isolations: &[Isolation],
        order: &[Isolation],
        set_up: impl Fn() -> SandboxBuilder,
    ) -> Result<Self> {
        let mut permitted: Vec<Arc<Sandbox>> = Vec::new();
        for &isolation in isolations {
            let mut builder = set_up().isolation(isolation);
            if let Some(first) = permitted.first() {
                // What was found out about languages holds for all.
                builder = builder.runtimes(first.shared_runtimes());
            }
            let started = builder.build();
            let started = started.with_context(|| {
                format!("no sandbox can be started here with the isolation {isolation}")
            })?;
            permitted.push(Arc::new(started));
        }
        let among = permitted.iter().map(|sandbox| &**sandbox);
        let Some(preferred) = Sandbox::preferred(order, among) else {
            bail!(
                "the setting isolation_order names none of the isolations that are permitted: {}",
                Isolation::names(isolations)
            );
        };
        Ok(Self { preferred: Arc::new(preferred), permitted })
    }

    /// What a client gets who leaves the choice to us.
    pub(crate) fn preferred(&self) -> &Arc<Sandbox> {
        &self.preferred
    }

    /// All of them, each once.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Sandbox>> {
        self.permitted.iter()
    }

    /// What is permitted, by name.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all().map(|sandbox| sandbox.isolation().name()).collect()
    }

    /// What a client asked for; the reason why it cannot be had is for the client.
    pub(crate) fn find(&self, asked: Option<&str>) -> Result<&Arc<Sandbox>, String> {
        let name = match asked {
            None | Some("auto") => return Ok(&self.preferred),
            Some(name) => name,
        };
        let found = self.all().find(|sandbox| sandbox.isolation().name() == name);
        found.ok_or_else(|| {
            let permitted = self.names().join(", ");
            format!("'{}' is not permitted here: it is {permitted} or auto", name.escape_debug())
        })
    }

    /// What fetches packages: native walls are the only ones with a way out to an index.
    pub(crate) fn for_packages(&self) -> &Arc<Sandbox> {
        let native = self.all().find(|sandbox| sandbox.isolation() == Isolation::Native);
        native.unwrap_or(&self.preferred)
    }

    /// What is prepared ahead, by whichever does so.
    pub(crate) fn pool(&self) -> Option<PoolStats> {
        self.all().find_map(|sandbox| sandbox.pool())
    }
}
