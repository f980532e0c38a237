use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{
    CancelToken, NetworkEvent, Protection, StageOutcome, StagePlan, StreamKind, UsageSample,
};

/// What builds the walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Isolation {
    /// This program itself, with the kernel's own means.
    Native,
    /// A Docker Engine.
    Docker,
    /// The container runtime runc.
    Runc,
    /// gVisor, a kernel of its own in user space.
    Gvisor,
}

impl Isolation {
    /// All of them, in the order in which they are preferred unless somebody says otherwise.
    pub const ALL: &'static [Self] = &[Self::Native, Self::Docker, Self::Runc, Self::Gvisor];

    /// The name in requests, reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Runc => "runc",
            Self::Gvisor => "gvisor",
        }
    }

    /// Reads names with commas between them; each may be there once, and at least one must.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let isolation = name.parse()?;
            if list.contains(&isolation) {
                return Err(format!("'{name}' is there twice"));
            }
            list.push(isolation);
        }
        if list.is_empty() {
            return Err(format!("at least one must be named: {}", Self::names(Self::ALL)));
        }
        Ok(list)
    }

    /// Why it was taken, if nothing spoke against the first that is preferred.
    pub fn reason_of_first(self) -> String {
        format!("auto: {self} is first in the order of preference")
    }

    /// The names of these, as a person would list them: `a, b or c`.
    pub fn names(isolations: &[Self]) -> String {
        match isolations {
            [] => String::new(),
            [only] => only.name().to_owned(),
            [first @ .., last] => {
                let first: Vec<_> = first.iter().map(|isolation| isolation.name()).collect();
                format!("{} or {last}", first.join(", "))
            }
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isolation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied();
        all.find(|isolation| isolation.name() == text).ok_or_else(|| {
            let names = Self::names(Self::ALL);
            format!("'{}' is not an isolation of this build: it is {names}", text.escape_debug())
        })
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
    /// What bounds all of its sandboxes together; none if nothing does.
    pub together: Option<TogetherLimits>,
}

/// What all sandboxes of one backend may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TogetherLimits {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// The protections of one backend as sets, to compare backends by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// What it enforces on this host.
    pub enforced: BTreeSet<Protection>,
    /// What it enforces by design, and cannot enforce on this host.
    pub lacks_here: BTreeSet<Protection>,
}

impl Coverage {
    /// Split what a backend enforces by design into what it enforces here and what it cannot.
    pub fn new(by_design: &[Protection], lacks_here: &[MissingProtection]) -> Self {
        let lacks_here: BTreeSet<_> = lacks_here.iter().map(|missing| missing.protection).collect();
        let enforced = by_design.iter().copied().filter(|name| !lacks_here.contains(name));
        Self { enforced: enforced.collect(), lacks_here }
    }

    /// What it enforces on a host that has everything.
    pub fn by_design(&self) -> BTreeSet<Protection> {
        self.enforced.union(&self.lacks_here).copied().collect()
    }
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
    /// It tried to reach something.
    fn network(&mut self, _: NetworkEvent) {}
}

/// Builds walls around a stage and runs it: validate and probe happened before, so this either
/// carries the plan out whole or says why it could not.
pub trait Backend: Send + Sync {
    /// Its name in reports.
    fn isolation(&self) -> Isolation;

    /// What it can enforce on this host.
    fn capabilities(&self) -> &Capabilities;

    /// What it could enforce on another host and cannot on this one. Where that is nothing, it is at full function.
    fn lacks_here(&self) -> &[MissingProtection] {
        &[]
    }

    /// What it enforces on this host, and what the host keeps it from.
    fn coverage(&self) -> Coverage {
        Coverage::new(&self.capabilities().enforceable, self.lacks_here())
    }

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
        "this host cannot enforce '{}': {}; {}; or allow it to be missing (--allow-missing {})",
        .0.protection, .0.reason, .0.remedy, .0.protection
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isolation_is_listed_and_reads_back() {
        for isolation in Isolation::ALL {
            assert_eq!(isolation.to_string().parse(), Ok(*isolation));
            let json = serde_json::to_value(isolation).unwrap();
            assert_eq!(json, isolation.name());
        }
        assert_eq!(Isolation::ALL[0], Isolation::Native);
    }

    #[test]
    fn a_list_has_each_name_once_and_at_least_one() {
        let list = [Isolation::Runc, Isolation::Native];
        assert_eq!(Isolation::parse_list(" runc,native ,"), Ok(list.to_vec()));
        assert!(Isolation::parse_list("runc,runc").unwrap_err().contains("twice"));
        assert!(Isolation::parse_list(" , ").unwrap_err().contains("native"));
        assert!(Isolation::parse_list("runc,magic").unwrap_err().contains("'magic'"));
    }

    #[test]
    fn an_unknown_isolation_is_told_the_known_ones() {
        let message = "magic".parse::<Isolation>().unwrap_err();
        let names = Isolation::names(Isolation::ALL);
        assert!(message.contains("'magic'") && message.ends_with(&names), "{message}");
    }
}
