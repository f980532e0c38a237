//! The types of sandbox-run, in the order in which to read them.
//!
//! This crate does no I/O and depends on no kernel, protocol or runtime. It defines what can be
//! requested ([`Request`], [`Limits`], [`NetworkPolicy`]), what is returned ([`Report`], [`Event`])
//! and what an isolation backend provides ([`Backend`]). Values are validated when they are
//! created, so every value that exists is valid.

mod glob;
mod size;
mod time;

mod id;
mod path;

mod egress_proxy;
mod limits;
mod network;
mod protection;

mod package;
mod request;
mod snippet;
mod volume;
mod workspace;

mod collect;
mod isolation;
mod status;
mod stream;

mod event;
mod report;

mod backend;
mod backend_error;
mod cancel;
mod error_chain;
mod instance;
mod observer;
mod plan;

pub use backend::{AggregateLimits, Backend, Capabilities, Coverage, PoolStats, WarmPoolStats};
pub use backend_error::{BackendError, Feature, MissingProtection};
pub use cancel::{CancelRegistration, CancelToken};
pub use collect::{CollectRule, CollectedFile, SkippedFile};
pub use egress_proxy::{EgressProxy, HostPort, HostProxies, HostProxy, InvalidHostPort};
pub use error_chain::with_causes;
pub use event::{Event, EventKind, UsageSample};
pub use glob::{Glob, InvalidGlob};
pub use id::{ExecutionId, InvalidExecutionId};
pub use instance::{
    DirectoryEntry, Instance, InstanceUsage, Process, ProcessLimits, ProcessOutcome,
};
pub use isolation::Isolation;
pub use limits::{InvalidLimit, Limits};
pub use network::{
    AddressRange, AllowRule, AllowTarget, Allowlist, ConnectionRecord, Decision, DnsQueryRecord,
    InvalidAllowRule, InvalidNetworkPolicy, NetworkEvent, NetworkLimits, NetworkPolicy,
    NetworkReport, Transport, special_address,
};
pub use observer::Observer;
pub use package::{EnvironmentName, InvalidEnvironmentName, InvalidPackage, PackageSpec};
pub use path::{InvalidPath, RelativePath};
pub use plan::{
    Artefacts, Ending, ProcessSpec, SandboxSpec, StageOutcome, StagePlan, TimeKind, Tree, WarmPlan,
};
pub use protection::{Protection, UnknownProtection};
pub use report::{
    FileEncoding, OutputFile, Report, StageReport, StageUsage, Timings, Violation, signal_name,
    text_and_base64,
};
pub use request::{Acceptance, InputFile, InvalidRequest, LanguageChoice, Request, RequestBuilder};
pub use size::{ByteSize, InvalidSize};
pub use snippet::{LineOrigin, Snippet};
pub use status::{Stage, Start, Status};
pub use stream::{Stdin, StreamKind};
pub use time::{InvalidDuration, format_duration, parse_duration};
pub use volume::{InvalidVolume, Volume, VolumeAccess};
pub use workspace::{
    InvalidWorkspace, WorkspaceAccess, WorkspaceChoice, WorkspaceName, WorkspaceOutcome,
    WorkspacePlan, WorkspaceQuota, WorkspaceReport, WorkspaceSize,
};
