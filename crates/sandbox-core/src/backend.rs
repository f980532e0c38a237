use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{CancelToken, Protection, StageOutcome, StagePlan, StreamKind, UsageSample};

/// What builds the walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Isolation {
    /// This program itself, with the kernel's own means.
    Native,
    /// The container runtime runc.
    Runc,
    /// gVisor, a kernel of its own in user space.
    Gvisor,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Runc => f.write_str("runc"),
            Self::Gvisor => f.write_str("gvisor"),
        }
    }
}

impl FromStr for Isolation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "native" => Ok(Self::Native),
            "runc" => Ok(Self::Runc),
            "gvisor" => Ok(Self::Gvisor),
            _ => Err(format!(
                "'{text}' is not an isolation this build offers: it offers native, runc and gvisor"
            )),
        }
    }
}

/// A protection this host cannot give, why, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingProtection {
    /// Which one.
    pub protection: Protection,
    /// What stands in the way.
    pub reason: String,
    /// What a person can do about it.
    pub remedy: String,
}

/// What a backend can really do on this host, found by trying.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// What it can enforce.
    pub enforceable: Vec<Protection>,
    /// What it cannot.
    pub missing: Vec<MissingProtection>,
}

/// Sandboxes that a backend prepares before they are asked for, and how often that was soon enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// How many it tries to keep ready.
    pub wanted: usize,
    /// How many are ready now.
    pub ready: usize,
    /// How many more are ready, each with a compiled program in it that was asked for more than once.
    pub loaded: usize,
    /// Stages that got one prepared ahead, since the start.
    pub prepared_claims: u64,
    /// Stages that one had to be built for, since the start.
    pub built_claims: u64,
    /// Runtimes that are started ahead, by kind.
    pub warm: Vec<WarmFigures>,
}

/// Runtimes of one kind that wait for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmFigures {
    /// Whose runtime it is.
    pub name: String,
    /// How many it is tried to keep waiting.
    pub wanted: usize,
    /// How many wait now.
    pub ready: usize,
    /// Stages that got one.
    pub hits: u64,
    /// Stages that found none and started cold.
    pub misses: u64,
    /// Why the last one could not be started.
    pub failure: Option<String>,
}

/// Hears what happens while a stage runs. Called on the thread that supervises it: a slow observer
/// slows the program down by filling its pipes, and loses nothing.
pub trait Observer {
    /// The program wrote this.
    fn output(&mut self, stream: StreamKind, bytes: &[u8]);
    /// A sample of what it uses.
    fn usage(&mut self, sample: UsageSample);
}

/// Builds walls around a stage and runs it: validate and probe happened before, so this either
/// carries the plan out whole or says why it could not.
pub trait Backend: Send + Sync {
    /// Its name in reports.
    fn isolation(&self) -> Isolation;

    /// What it can enforce on this host.
    fn capabilities(&self) -> &Capabilities;

    /// What it has ready; none if it prepares nothing ahead.
    fn pool(&self) -> Option<PoolFigures> {
        None
    }

    /// Whether it starts runtimes before there is a program for them, where a plan says how.
    fn starts_runtimes_ahead(&self) -> bool {
        false
    }

    /// Carries out one stage and destroys its sandbox. Blocks until both are done.
    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError>;
}

/// Our failure to run a stage; never the program's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A limit or wall was asked for that this host cannot give.
    #[error(
        "this host cannot enforce '{}': {}; {}; or allow it to be missing",
        .0.protection, .0.reason, .0.remedy
    )]
    CannotEnforce(MissingProtection),
    /// The plan cannot be carried out as it stands, and the requester can change that.
    #[error("{0}")]
    Refused(String),
    /// A step failed.
    #[error("{step}")]
    Failed {
        /// What was being done.
        step: String,
        /// What the system said.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
