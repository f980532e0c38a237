//! Request, response and error types of the HTTP API: the only definition of each.
//!
//! The server and its clients use these types, and the OpenAPI document is generated from them. The library serializes
//! reports and events itself; the types here describe its JSON for clients, and a test of the server compares the two.

mod batch;
mod environments;
mod event;
mod execute;
mod executions;
mod files;
mod network;
mod problem;
mod report;
mod runtimes;
mod server;
mod workspaces;

pub use batch::{BatchReport, BatchRequest, BatchTicket};
pub use environments::{EnvironmentEntry, EnvironmentStatus, NewEnvironment, PackageEntry};
pub use event::{Event, EventType, ServerSentEvent};
pub use execute::{Accepted, ExecuteRequest};
pub use executions::{History, Summary};
pub use files::{Encoding, FileInput, InvalidContent};
pub use network::{NetworkMode, NetworkRequest};
pub use problem::{Code, Problem};
pub use report::{
    ConnectionRecord, DnsQueryRecord, NetworkReport, OutputFile, Report, SkippedFile, Stage,
    StageReport, Status, Timings, Violation, WorkspaceReport,
};
pub use runtimes::RuntimeEntry;
pub use server::{Health, Ready};
pub use workspaces::WorkspaceEntry;
