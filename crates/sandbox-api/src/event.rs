use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Problem, Report, Stage};

/// An event of an execution. The fields besides `seq` and `type` depend on the type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The sequence number, from 1 without gaps. Absent with `error`.
    pub seq: Option<u64>,
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// With `stage`: the stage that starts.
    pub stage: Option<Stage>,
    /// With `stdout` and `stderr`: the output, if it is valid UTF-8.
    pub data: Option<String>,
    /// With `stdout` and `stderr`: Base64 of the output, if it is not valid UTF-8.
    pub data_base64: Option<String>,
    /// With `progress`: the current step.
    pub message: Option<String>,
    /// With `usage`.
    pub cpu_ms: Option<u64>,
    /// With `usage`.
    pub memory_kb: Option<u64>,
    /// With `usage`.
    pub processes: Option<u64>,
    /// With `usage`.
    pub io_read_bytes: Option<u64>,
    /// With `usage`.
    pub io_write_bytes: Option<u64>,
    /// With `network`: the decision about a connection, a datagram or a DNS query.
    #[schema(value_type = Option<Object>)]
    pub network: Option<Value>,
    /// With `report`, the last event.
    pub report: Option<Report>,
    /// With `error`: why the stream ends early.
    pub problem: Option<Problem>,
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerSentEvent {
    /// The `seq` of the event.
    pub id: Option<String>,
    /// An `Event` as JSON.
    pub data: String,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// The execution was accepted.
    Queued,
    /// A preparation step starts.
    Progress,
    /// A stage starts.
    Stage,
    /// The program wrote to standard output.
    Stdout,
    /// The program wrote to standard error.
    Stderr,
    /// A sample of the resource usage.
    Usage,
    /// A decision about a connection, a datagram or a DNS query.
    Network,
    /// The execution has finished.
    Report,
    /// The stream ends early.
    Error,
}
