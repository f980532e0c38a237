//! The vocabulary of sandbox-run, in the order a newcomer should read it.
//!
//! This crate does no I/O and knows no kernel, wire or runtime. It says what can be asked for
//! ([`Request`], [`Limits`], [`NetworkPolicy`]), what is answered ([`Report`], [`Event`]) and what a
//! builder of walls must offer ([`Backend`]). A value that exists is a value that was checked:
//! impossible ones are refused where they are built.

mod glob;
mod size;
mod time;

mod id;
mod path;

mod gate;
mod limits;
mod network;
mod protection;

mod package;
mod request;
mod snippet;
mod volume;
mod workspace;

mod status;

mod event;
mod report;

mod backend;
mod cancel;
mod causes;
mod plan;

pub use backend::{
    Backend, BackendError, Capabilities, Coverage, Isolation, MissingProtection, Observer,
    PoolFigures, TogetherLimits, WarmFigures,
};
pub use cancel::{CancelRegistration, CancelToken};
pub use causes::with_causes;
pub use event::{Event, EventKind, UsageSample};
pub use gate::{Gate, HostPort, HostProxies, HostProxy, InvalidHostPort};
pub use glob::{Glob, InvalidGlob};
pub use id::{ExecutionId, InvalidExecutionId};
pub use limits::{InvalidLimit, Limits};
pub use network::{
    AddressRange, AllowRule, AllowTarget, Allowlist, ConnectionRecord, Decision, InvalidAllowRule,
    InvalidNetworkPolicy, NetworkEvent, NetworkLimits, NetworkPolicy, NetworkReport,
    QuestionRecord, Transport, special_address,
};
pub use package::{EnvironmentName, InvalidEnvironmentName, InvalidPackage, PackageSpec};
pub use path::{InvalidPath, RelativePath};
pub use plan::{
    Artefacts, CollectRule, CollectedFile, Ending, SkippedFile, StageOutcome, StagePlan, Start,
    Stdin, StreamKind, TimeKind, Tree, WarmPlan,
};
pub use protection::{Protection, UnknownProtection};
pub use report::{
    FileEncoding, OutputFile, Report, StageFigures, StageReport, Timings, Violation, signal_name,
    text_and_base64,
};
pub use request::{Acceptance, InputFile, InvalidRequest, LanguageChoice, Request, RequestBuilder};
pub use size::{ByteSize, InvalidSize};
pub use snippet::{Place, Snippet};
pub use status::{Stage, Status};
pub use time::{InvalidDuration, format_duration, parse_duration};
pub use volume::{InvalidVolume, Volume, VolumeAccess};
pub use workspace::{
    InvalidWorkspace, WorkspaceAccess, WorkspaceChoice, WorkspaceName, WorkspaceOutcome,
    WorkspacePlan, WorkspaceQuota, WorkspaceReport, WorkspaceSize,
};
