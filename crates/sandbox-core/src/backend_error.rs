use std::fmt;

use serde::Serialize;

use crate::Protection;

/// A protection that this host cannot provide, the reason, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingProtection {
    /// The protection.
    pub protection: Protection,
    /// Why the host cannot provide it.
    pub reason: String,
    /// What the operator can do about it.
    pub remedy: String,
}

/// What a backend may be able to do besides running one stage. The engine refuses a request that
/// needs more than its backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// `Backend::create`: sandboxes that live longer than one process.
    Instances,
    /// A terminal instead of pipes.
    Terminal,
    /// `Instance::pause` and `Instance::resume`.
    Pause,
    /// `Instance::connect`.
    Connect,
    /// `Instance::snapshot`.
    Snapshot,
}

impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Instances => "sandboxes that run several processes",
            Self::Terminal => "terminals",
            Self::Pause => "pausing a sandbox",
            Self::Connect => "connecting to a port of a sandbox",
            Self::Snapshot => "snapshots of a sandbox",
        })
    }
}

/// An internal error that prevented a stage from running. The outcome of a program is never an
/// error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The request requires a protection that this host cannot provide.
    #[error(
        "this host cannot enforce '{}': {}; {}; or allow it to be missing (--allow-missing {})",
        .0.protection, .0.reason, .0.remedy, .0.protection
    )]
    CannotEnforce(MissingProtection),
    /// The request cannot be carried out as it is, and the caller can change that.
    #[error("{0}")]
    Refused(String),
    /// The backend cannot do this; its capabilities say so.
    #[error("this kind of isolation does not support {0}")]
    Unsupported(Feature),
    /// A step of building or running the sandbox failed.
    #[error("{step}")]
    Failed {
        /// The step.
        step: String,
        /// The error of the operating system or of a lower layer.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
