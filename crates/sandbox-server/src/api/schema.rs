//! Schemas of reports and events for the OpenAPI document. The library defines and serializes these types, and does not
//! depend on OpenAPI. A test compares each schema with a real report.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use sandbox_api::{Accepted, Problem};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The time to wait: a boolean, or seconds.
pub(super) struct WaitParameter;

impl PartialSchema for WaitParameter {
    fn schema() -> RefOr<Schema> {
        let flag = ObjectBuilder::new().schema_type(Type::Boolean);
        let seconds = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
        OneOfBuilder::new().item(flag).item(seconds).into()
    }
}

impl ToSchema for WaitParameter {}

/// Label filters, each as `NAME:VALUE`.
pub(super) struct LabelParameter;

impl PartialSchema for LabelParameter {
    fn schema() -> RefOr<Schema> {
        let label = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[^:]+:"));
        ArrayBuilder::new().items(label).into()
    }
}

impl ToSchema for LabelParameter {}

/// The status of an execution.
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

/// A stage of an execution.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Compile,
    Run,
}

/// The report of an execution. While the status is `queued` or `running`, only `id`, `status`, `language`,
/// `exit_code` (null) and `created_at` are always present.
#[derive(ToSchema)]
pub(super) struct Report {
    #[schema(required, example = "exec_01JCQ0Z5V8W3M6T2K9R4")]
    id: String,
    status: Status,
    /// The last stage that ran.
    stage: Option<Stage>,
    /// Whether the program exited with code 0.
    success: Option<bool>,
    language: String,
    /// The version of the language.
    version: Option<String>,
    /// The isolation backend.
    isolation: Option<String>,
    /// Why the server chose this isolation backend, if the request left the choice to it.
    isolation_reason: Option<String>,
    /// The container image and its digest, if the program ran in one.
    image: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    /// Standard output and standard error, in the order of the writes.
    output: Option<String>,
    /// Base64 of the raw bytes, if the output is not valid UTF-8.
    stdout_base64: Option<String>,
    /// Base64 of the raw bytes, if the output is not valid UTF-8.
    stderr_base64: Option<String>,
    stdout_truncated: Option<bool>,
    stderr_truncated: Option<bool>,
    /// Why the execution did not succeed.
    error: Option<String>,
    /// The exit code. Null until the execution has finished; -1 if a signal or a limit ended the program.
    #[schema(required)]
    exit_code: Option<i32>,
    /// The signal that ended the program, unless the server sent it.
    signal: Option<String>,
    /// Wall-clock time of the run stage, in milliseconds.
    execution_time_ms: Option<f64>,
    cpu_time_ms: Option<f64>,
    memory_used_kb: Option<u64>,
    memory_used_mb: Option<u64>,
    stages: Option<Vec<StageReport>>,
    /// Files that match `collect`.
    output_files: Option<Vec<OutputFile>>,
    /// Files that match `collect` and were not returned.
    skipped_files: Option<Vec<SkippedFile>>,
    /// The workspace after the execution, if the request named one.
    workspace: Option<WorkspaceReport>,
    /// Connections and DNS queries of the program, if it had network access.
    network: Option<NetworkReport>,
    /// Protections that were in force.
    enforced: Option<Vec<String>>,
    /// Protections that were not in force, as `allow_missing` permits.
    missing: Option<Vec<String>>,
    /// Denied system calls.
    violations: Option<Vec<Violation>>,
    timings_ms: Option<Timings>,
    /// False if the report was not saved when this response was sent: it may be missing from the list of executions, and a later
    /// request for it may find nothing. Absent otherwise.
    stored: Option<bool>,
    /// When the server accepted the execution.
    #[schema(format = DateTime)]
    created_at: String,
    /// When the execution started. Absent once it has finished.
    #[schema(format = DateTime)]
    started_at: Option<String>,
}

/// A workspace after an execution.
#[derive(ToSchema)]
pub(super) struct WorkspaceReport {
    name: String,
    /// `rw` or `ro`.
    access: String,
    /// Whether the changes of the program were saved.
    saved: bool,
    /// Size of its files, in bytes.
    bytes: u64,
    /// Number of files, directories and links.
    files: u64,
    /// Why the changes were not saved.
    reason: Option<String>,
    /// Files that were not saved because a workspace cannot hold them.
    left_out: Option<Vec<SkippedFile>>,
}

/// Network use of a program.
#[derive(ToSchema)]
pub(super) struct NetworkReport {
    /// Connections and datagrams, by destination and decision.
    connections: Vec<ConnectionRecord>,
    /// DNS queries.
    dns: Vec<QuestionRecord>,
    /// Whether the lists are incomplete.
    truncated: Option<bool>,
}

/// Connections to one destination with the same decision.
#[derive(ToSchema)]
pub(super) struct ConnectionRecord {
    /// The name that the program resolved, or else the address.
    host: String,
    address: String,
    port: u16,
    /// `tcp` or `udp`.
    transport: String,
    /// `allowed`, `refused` or `failed`.
    decision: String,
    /// Why the connection was not allowed.
    reason: Option<String>,
    count: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// DNS queries for one name with the same decision.
#[derive(ToSchema)]
pub(super) struct QuestionRecord {
    name: String,
    /// The record type: `A` or `AAAA`.
    kind: String,
    /// `allowed`, `refused` or `failed`.
    decision: String,
    /// Why the query was not allowed.
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
    /// What was prepared before the request: nothing (`cold`), the sandbox (`prepared`), or the sandbox and the language
    /// runtime in it (`warm`).
    start: String,
    /// The output of the compiler.
    output: Option<String>,
}

/// A collected file.
#[derive(ToSchema)]
pub(super) struct OutputFile {
    path: String,
    size: u64,
    /// SHA-256 of the content, in hexadecimal.
    sha256: String,
    /// `utf-8` or `base64`.
    encoding: String,
    content: String,
}

/// A file that was not returned or not saved.
#[derive(ToSchema)]
pub(super) struct SkippedFile {
    path: String,
    reason: String,
}

/// A denied system call.
#[derive(ToSchema)]
pub(super) struct Violation {
    syscall: String,
    count: u64,
}

/// Duration of each phase, in milliseconds.
#[derive(ToSchema)]
pub(super) struct Timings {
    queue: f64,
    prepare: f64,
    compile: f64,
    run: f64,
    collect: f64,
}

/// An event of an execution. The fields besides `seq` and `type` depend on the type.
#[derive(ToSchema)]
pub(super) struct Event {
    /// The sequence number, from 1 without gaps. Absent with `error`.
    seq: Option<u64>,
    #[serde(rename = "type")]
    kind: EventType,
    /// With `stage`: the stage that starts.
    stage: Option<Stage>,
    /// With `stdout` and `stderr`: the output, if it is valid UTF-8.
    data: Option<String>,
    /// With `stdout` and `stderr`: Base64 of the output, if it is not valid UTF-8.
    data_base64: Option<String>,
    /// With `progress`: the current step.
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
    /// With `network`: the decision about a connection, a datagram or a DNS query.
    #[schema(value_type = Option<Object>)]
    network: Option<()>,
    /// With `report`, the last event.
    report: Option<Report>,
    /// With `error`: why the stream ends early.
    problem: Option<Problem>,
}

/// A server-sent event.
#[derive(ToSchema)]
pub(super) struct ServerSentEvent {
    /// The `seq` of the event.
    id: Option<String>,
    /// An `Event` as JSON.
    data: String,
}

/// The type of an event.
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

/// The result of one request of a batch.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum BatchReport {
    Report(Box<Report>),
    Problem(Problem),
}

/// The id of one execution of a batch, or why there is none.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum BatchTicket {
    Accepted(Accepted),
    Problem(Problem),
}
