//! What the OpenAPI document says of things that are made elsewhere: reports and events are the
//! library's, which knows nothing of HTTP, and the handlers only carry them. A test holds each of these
//! against a real one.
#![expect(
    dead_code,
    reason = "these types describe JSON that is never read or written through them"
)]

use sandbox_api::{Accepted, Problem};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// How long to wait: as long as the server does, not at all, or so many seconds.
pub(super) struct WaitParameter;

impl PartialSchema for WaitParameter {
    fn schema() -> RefOr<Schema> {
        let flag = ObjectBuilder::new().schema_type(Type::Boolean);
        let seconds = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
        OneOfBuilder::new().item(flag).item(seconds).into()
    }
}

impl ToSchema for WaitParameter {}

/// Labels that are asked for, each as a name, a colon and a value.
pub(super) struct LabelParameter;

impl PartialSchema for LabelParameter {
    fn schema() -> RefOr<Schema> {
        let label = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[^:]+:"));
        ArrayBuilder::new().items(label).into()
    }
}

impl ToSchema for LabelParameter {}

/// How an execution ended, or where it is.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Queued,
    Running,
    Completed,
    RuntimeError,
    CompileError,
    Timeout,
    MemoryLimit,
    OutputLimit,
    Cancelled,
    Error,
}

/// A part of an execution.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Compile,
    Run,
}

/// What came of an execution. While it is `queued` or `running`, only `id`, `status`, `language`,
/// `exit_code` (null) and `created_at` are sure to be there.
#[derive(ToSchema)]
pub(super) struct Report {
    #[schema(required, example = "exec_01JCQ0Z5V8W3M6T2K9R4")]
    id: String,
    status: Status,
    /// The stage it ended in.
    stage: Option<Stage>,
    /// Whether the program ended by itself with code 0.
    success: Option<bool>,
    language: String,
    /// The version that ran it.
    version: Option<String>,
    /// What built the walls.
    isolation: Option<String>,
    /// Why it was that one, if the choice was the server's.
    isolation_reason: Option<String>,
    /// The image whose files it saw, with its digest, if it was not the server's own host.
    image: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    /// Both in the order in which they were written.
    output: Option<String>,
    /// The bytes, where the text is not all there is.
    stdout_base64: Option<String>,
    /// The bytes, where the text is not all there is.
    stderr_base64: Option<String>,
    stdout_truncated: Option<bool>,
    stderr_truncated: Option<bool>,
    /// Why it did not succeed, in a sentence.
    error: Option<String>,
    /// Null until it is over; -1 if the program did not end by itself.
    #[schema(required)]
    exit_code: Option<i32>,
    /// The name of the signal that ended it, if it was its own.
    signal: Option<String>,
    /// Time on the clock of the run stage, as the program saw it.
    execution_time_ms: Option<f64>,
    cpu_time_ms: Option<f64>,
    memory_used_kb: Option<u64>,
    memory_used_mb: Option<u64>,
    stages: Option<Vec<StageReport>>,
    /// Files brought back.
    output_files: Option<Vec<OutputFile>>,
    /// Names that fitted a pattern and were left where they were.
    skipped_files: Option<Vec<SkippedFile>>,
    /// What became of the workspace, if the request named one.
    workspace: Option<WorkspaceReport>,
    /// What it tried to reach, if it was allowed to reach something.
    network: Option<NetworkReport>,
    /// Protections really in force.
    enforced: Option<Vec<String>>,
    /// Protections that were wanted and not in force, because the request allowed it.
    missing: Option<Vec<String>>,
    /// System calls that were denied.
    violations: Option<Vec<Violation>>,
    timings_ms: Option<Timings>,
    /// False if the report could not be stored when this answer was sent: it may be missing from the history, and
    /// asking for it again may find nothing. Left out otherwise.
    stored: Option<bool>,
    /// When the execution was accepted.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was begun, while it is not over.
    #[schema(format = DateTime)]
    started_at: Option<String>,
}

/// What became of a workspace.
#[derive(ToSchema)]
pub(super) struct WorkspaceReport {
    name: String,
    /// `rw` or `ro`.
    access: String,
    /// Whether what the program left is what is kept now.
    saved: bool,
    /// Bytes in its files, as it is kept now.
    bytes: u64,
    /// Files, directories and links.
    files: u64,
    /// Why it was not saved, in a sentence.
    reason: Option<String>,
    /// What was left out because no workspace can hold it.
    left_out: Option<Vec<SkippedFile>>,
}

/// What a program tried to reach.
#[derive(ToSchema)]
pub(super) struct NetworkReport {
    /// Connections and datagrams, by place and decision.
    connections: Vec<ConnectionRecord>,
    /// Questions for names.
    dns: Vec<DnsQueryRecord>,
    /// Whether there was more than is told here.
    truncated: Option<bool>,
}

/// Connections to one place that ended alike.
#[derive(ToSchema)]
pub(super) struct ConnectionRecord {
    /// The name that it was looked up by, or else the address.
    host: String,
    address: String,
    port: u16,
    /// `tcp` or `udp`.
    transport: String,
    /// `allowed`, `refused` or `failed`.
    decision: String,
    /// Why, if it was not let through.
    reason: Option<String>,
    count: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Questions for one name that were answered alike.
#[derive(ToSchema)]
pub(super) struct DnsQueryRecord {
    name: String,
    /// What was asked of it: `A`, `AAAA`.
    kind: String,
    /// `allowed`, `refused` or `failed`.
    decision: String,
    /// Why, if it was not answered.
    reason: Option<String>,
    addresses: Vec<String>,
    count: u64,
}

/// One stage of a report.
#[derive(ToSchema)]
pub(super) struct StageReport {
    name: Stage,
    status: Status,
    exit_code: i32,
    signal: Option<String>,
    wall_time_ms: f64,
    cpu_user_ms: f64,
    cpu_system_ms: f64,
    memory_peak_kb: u64,
    processes_peak: u64,
    io_read_bytes: u64,
    io_write_bytes: u64,
    /// Whether the result came from the compile cache.
    cached: bool,
    /// What was there of its sandbox when it was asked for: nothing (`cold`), its walls (`prepared`), or the
    /// runtime inside too (`warm`).
    start: String,
    /// What a compiler printed.
    output: Option<String>,
}

/// A file brought back.
#[derive(ToSchema)]
pub(super) struct OutputFile {
    path: String,
    size: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    sha256: String,
    /// `utf-8` or `base64`.
    encoding: String,
    content: String,
}

/// A name that fitted a pattern and was left where it was.
#[derive(ToSchema)]
pub(super) struct SkippedFile {
    path: String,
    reason: String,
}

/// A system call that was denied, and how often.
#[derive(ToSchema)]
pub(super) struct Violation {
    syscall: String,
    count: u64,
}

/// Where the time went, in milliseconds.
#[derive(ToSchema)]
pub(super) struct Timings {
    queue: f64,
    prepare: f64,
    compile: f64,
    run: f64,
    collect: f64,
}

/// A message of a stream. What is there besides `seq` and `type` depends on the type.
#[derive(ToSchema)]
pub(super) struct Event {
    /// Its number, from 1 without gaps; a failure of the server has none.
    seq: Option<u64>,
    #[serde(rename = "type")]
    kind: EventType,
    /// With `stage`: which one began.
    stage: Option<Stage>,
    /// With `stdout` and `stderr`: what was written, if it is text.
    data: Option<String>,
    /// With `stdout` and `stderr`: what was written, if it is not.
    data_base64: Option<String>,
    /// With `progress`: what is being done.
    message: Option<String>,
    /// With `usage`.
    cpu_ms: Option<u64>,
    /// With `usage`.
    memory_kb: Option<u64>,
    /// With `usage`.
    processes: Option<u64>,
    /// With `usage`.
    io_read_bytes: Option<u64>,
    /// With `usage`.
    io_write_bytes: Option<u64>,
    /// With `network`: what was decided about a connection, a datagram or a question for a name.
    #[schema(value_type = Option<Object>)]
    network: Option<()>,
    /// With `report`, the last event.
    report: Option<Report>,
    /// With `error`: why the stream ends early.
    problem: Option<Problem>,
}

/// An event as it stands in a stream of server-sent events.
#[derive(ToSchema)]
pub(super) struct ServerSentEvent {
    /// Its `seq`.
    id: Option<String>,
    /// An `Event` as JSON.
    data: String,
}

/// What an event is about.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventType {
    Queued,
    Progress,
    Stage,
    Stdout,
    Stderr,
    Usage,
    Network,
    Report,
    Error,
}

/// What came of one request of a batch.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum BatchReport {
    Report(Box<Report>),
    Problem(Problem),
}

/// The id for one request of a batch.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum BatchTicket {
    Accepted(Accepted),
    Problem(Problem),
}
