//! The sandboxes that executions run in: one for each isolation that the operator permits.

use std::sync::Arc;

use sandbox::{Isolation, PoolStats, Sandbox, SandboxBuilder, StartError};

/// The sandboxes of a server. They share queue, quotas and store.
pub struct Sandboxes {
    /// The default.
    preferred: Arc<Sandbox>,
    permitted: Vec<Arc<Sandbox>>,
}

/// Why the sandboxes of a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxesError {
    /// A permitted isolation is not available on this host.
    #[error("no sandbox can be started here with the isolation {isolation}")]
    Unavailable {
        /// The isolation.
        isolation: Isolation,
        /// The reason.
        source: StartError,
    },
    /// The order of preference contains none of the permitted isolations.
    #[error(
        "the setting isolation_order names none of the isolations that are permitted: {permitted}"
    )]
    NoPreference {
        /// The permitted isolations.
        permitted: String,
    },
}

impl Sandboxes {
    /// Starts a sandbox for each permitted isolation; `builder` returns the common configuration. An unavailable
    /// isolation is an error at the start, so that clients do not find out by failing executions.
    pub fn start(
        isolations: &[Isolation],
        order: &[Isolation],
        builder: impl Fn() -> SandboxBuilder,
    ) -> Result<Self, SandboxesError> {
        let mut permitted: Vec<Arc<Sandbox>> = Vec::new();
        for &isolation in isolations {
            let mut builder = builder().isolation(isolation);
            if let Some(first) = permitted.first() {
                // All share the detected toolchains.
                builder = builder.runtimes(first.shared_runtimes());
            }
            let started = builder.build();
            let started =
                started.map_err(|source| SandboxesError::Unavailable { isolation, source })?;
            permitted.push(Arc::new(started));
        }
        let candidates = permitted.iter().map(|sandbox| &**sandbox);
        let preferred = Sandbox::preferred(order, candidates).ok_or_else(|| {
            SandboxesError::NoPreference { permitted: Isolation::names(isolations) }
        })?;
        Ok(Self { preferred: Arc::new(preferred), permitted })
    }

    /// Returns the default sandbox.
    pub fn preferred(&self) -> &Arc<Sandbox> {
        &self.preferred
    }

    /// Returns all permitted sandboxes, each once.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Sandbox>> {
        self.permitted.iter()
    }

    /// Returns the names of the permitted isolations.
    pub fn names(&self) -> Vec<&'static str> {
        self.all().map(|sandbox| sandbox.isolation().name()).collect()
    }

    /// Returns the sandbox with the requested isolation, the default for none or `auto`. The error is for the client.
    pub fn find(&self, requested: Option<&str>) -> Result<&Arc<Sandbox>, String> {
        let name = match requested {
            None | Some("auto") => return Ok(&self.preferred),
            Some(name) => name,
        };
        let found = self.all().find(|sandbox| sandbox.isolation().name() == name);
        found.ok_or_else(|| {
            let permitted = self.names().join(", ");
            format!("'{}' is not permitted here: it is {permitted} or auto", name.escape_debug())
        })
    }

    /// Returns the sandbox that installs packages: only native isolation can reach a package index.
    pub fn for_packages(&self) -> &Arc<Sandbox> {
        let native = self.all().find(|sandbox| sandbox.isolation() == Isolation::Native);
        native.unwrap_or(&self.preferred)
    }

    /// Returns the state of the warm pool, if a sandbox has one.
    pub fn pool(&self) -> Option<PoolStats> {
        self.all().find_map(|sandbox| sandbox.pool())
    }
}
