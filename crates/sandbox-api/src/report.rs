use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The status of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, and waiting to start.
    Queued,
    /// Started.
    Running,
    /// The program exited with code 0.
    Completed,
    /// The program exited with another code, or a signal ended it.
    RuntimeError,
    /// The compiler reported an error.
    CompileError,
    /// A time limit ended the program.
    Timeout,
    /// The memory limit ended the program.
    MemoryLimit,
    /// The output limit ended the program.
    OutputLimit,
    /// The client cancelled the execution.
    Cancelled,
    /// Internal error: the program did not run, or not to its end.
    Error,
}

/// A stage of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The compile stage.
    Compile,
    /// The run stage.
    Run,
}

/// The report of an execution. While the status is `queued` or `running`, only `id`, `status`, `language`,
/// `exit_code` (null) and `created_at` are always present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// The id of the execution.
    #[schema(required, example = "exec_01JCQ0Z5V8W3M6T2K9R4")]
    pub id: String,
    /// The status.
    pub status: Status,
    /// The last stage that ran.
    pub stage: Option<Stage>,
    /// Whether the program exited with code 0.
    pub success: Option<bool>,
    /// The language, by name.
    pub language: String,
    /// The version of the language.
    pub version: Option<String>,
    /// The isolation backend.
    pub isolation: Option<String>,
    /// Why the server chose this isolation backend, if the request left the choice to it.
    pub isolation_reason: Option<String>,
    /// The container image and its digest, if the program ran in one.
    pub image: Option<String>,
    /// Standard output. Invalid UTF-8 is replaced by U+FFFD.
    pub stdout: Option<String>,
    /// Standard error. Invalid UTF-8 is replaced by U+FFFD.
    pub stderr: Option<String>,
    /// Standard output and standard error, in the order of the writes.
    pub output: Option<String>,
    /// Base64 of the raw bytes, if the output is not valid UTF-8.
    pub stdout_base64: Option<String>,
    /// Base64 of the raw bytes, if the output is not valid UTF-8.
    pub stderr_base64: Option<String>,
    /// Whether `stdout` is incomplete.
    pub stdout_truncated: Option<bool>,
    /// Whether `stderr` is incomplete.
    pub stderr_truncated: Option<bool>,
    /// Why the execution did not succeed.
    pub error: Option<String>,
    /// The exit code. Null until the execution has finished; -1 if a signal or a limit ended the program.
    #[schema(required)]
    pub exit_code: Option<i32>,
    /// The signal that ended the program, unless the server sent it.
    pub signal: Option<String>,
    /// Wall-clock time of the run stage, in milliseconds.
    pub execution_time_ms: Option<f64>,
    /// CPU time of the run stage, in milliseconds.
    pub cpu_time_ms: Option<f64>,
    /// Peak memory of any stage, in KiB.
    pub memory_used_kb: Option<u64>,
    /// Peak memory of any stage, in MiB, rounded up.
    pub memory_used_mb: Option<u64>,
    /// The stages that ran.
    pub stages: Option<Vec<StageReport>>,
    /// Files that match `collect`.
    pub output_files: Option<Vec<OutputFile>>,
    /// Files that match `collect` and were not returned.
    pub skipped_files: Option<Vec<SkippedFile>>,
    /// The workspace after the execution, if the request named one.
    pub workspace: Option<WorkspaceReport>,
    /// Connections and DNS queries of the program, if it had network access.
    pub network: Option<NetworkReport>,
    /// Protections that were in force.
    pub enforced: Option<Vec<String>>,
    /// Protections that were not in force, as `allow_missing` permits.
    pub missing: Option<Vec<String>>,
    /// Denied system calls.
    pub violations: Option<Vec<Violation>>,
    /// Duration of each phase.
    pub timings_ms: Option<Timings>,
    /// False if the report was not saved when this response was sent: it may be missing from the list of executions, and a later
    /// request for it may find nothing. Absent otherwise.
    pub stored: Option<bool>,
    /// When the server accepted the execution.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When the execution started. Absent once it has finished.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
}

/// A workspace after an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceReport {
    /// The name of the workspace.
    pub name: String,
    /// `rw` or `ro`.
    pub access: String,
    /// Whether the changes of the program were saved.
    pub saved: bool,
    /// Size of its files, in bytes.
    pub bytes: u64,
    /// Number of files, directories and links.
    pub files: u64,
    /// Why the changes were not saved.
    pub reason: Option<String>,
    /// Files that were not saved because a workspace cannot hold them.
    pub left_out: Option<Vec<SkippedFile>>,
}

/// Network use of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NetworkReport {
    /// Connections and datagrams, by destination and decision.
    pub connections: Vec<ConnectionRecord>,
    /// DNS queries.
    pub dns: Vec<DnsQueryRecord>,
    /// Whether the lists are incomplete.
    pub truncated: Option<bool>,
}

/// Connections to one destination with the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionRecord {
    /// The name that the program resolved, or else the address.
    pub host: String,
    /// The IP address.
    pub address: String,
    /// The port.
    pub port: u16,
    /// `tcp` or `udp`.
    pub transport: String,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// Why the connection was not allowed.
    pub reason: Option<String>,
    /// Number of connections or datagrams.
    pub count: u64,
    /// Received bytes.
    pub bytes_in: u64,
    /// Sent bytes.
    pub bytes_out: u64,
}

/// DNS queries for one name with the same decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DnsQueryRecord {
    /// The name.
    pub name: String,
    /// The record type: `A` or `AAAA`.
    pub kind: String,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// Why the query was not allowed.
    pub reason: Option<String>,
    /// The addresses in the response.
    pub addresses: Vec<String>,
    /// Number of queries.
    pub count: u64,
}

/// One stage of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StageReport {
    /// The stage.
    pub name: Stage,
    /// The status of the stage.
    pub status: Status,
    /// The exit code; -1 if a signal or a limit ended the program.
    pub exit_code: i32,
    /// The signal that ended the program.
    pub signal: Option<String>,
    /// Wall-clock time, in milliseconds.
    pub wall_time_ms: f64,
    /// CPU time in user mode, in milliseconds.
    pub cpu_user_ms: f64,
    /// CPU time in kernel mode, in milliseconds.
    pub cpu_system_ms: f64,
    /// Peak memory, in KiB.
    pub memory_peak_kb: u64,
    /// Peak number of processes and threads.
    pub processes_peak: u64,
    /// Bytes read, from files and pipes.
    pub io_read_bytes: u64,
    /// Bytes written, to files and pipes.
    pub io_write_bytes: u64,
    /// Whether the result came from the compile cache.
    pub cached: bool,
    /// What was prepared before the request: nothing (`cold`), the sandbox (`prepared`), or the sandbox and the language
    /// runtime in it (`warm`).
    pub start: String,
    /// The output of the compiler.
    pub output: Option<String>,
}

/// A collected file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputFile {
    /// The path, relative to the work directory.
    pub path: String,
    /// The size, in bytes.
    pub size: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// `utf-8` or `base64`.
    pub encoding: String,
    /// The content, encoded as `encoding` says.
    pub content: String,
}

/// A file that was not returned or not saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SkippedFile {
    /// The path, relative to the work directory.
    pub path: String,
    /// Why it was skipped.
    pub reason: String,
}

/// A denied system call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The name of the system call.
    pub syscall: String,
    /// How often the program called it.
    pub count: u64,
}

/// Duration of each phase, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timings {
    /// From acceptance to the start.
    pub queue: f64,
    /// Preparing sandboxes and files.
    pub prepare: f64,
    /// The compile stage.
    pub compile: f64,
    /// The run stage.
    pub run: f64,
    /// Collecting output files and destroying sandboxes.
    pub collect: f64,
}
