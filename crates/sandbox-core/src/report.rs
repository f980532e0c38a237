use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{
    CollectedFile, ExecutionId, Isolation, NetworkReport, Protection, SkippedFile, Stage, Start,
    Status, WorkspaceReport,
};

/// The result of an execution. Its JSON form is stable: clients parse it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The ID of the execution.
    pub id: ExecutionId,
    /// How it ended.
    pub status: Status,
    /// The stage it ended in.
    pub stage: Stage,
    /// Whether the program exited with code 0.
    pub success: bool,
    /// The name of the language.
    pub language: String,
    /// The version that ran it.
    pub version: String,
    /// The isolation backend.
    pub isolation: Isolation,
    /// Why this backend was chosen, if the request left the choice open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation_reason: Option<String>,
    /// The image whose files the program saw, with its digest, if it was not the host's file
    /// system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Both streams in the order in which they were written.
    pub output: String,
    /// Base64 of the raw bytes, if standard output is not valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// Base64 of the raw bytes, if standard error is not valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// Whether standard output was truncated.
    pub stdout_truncated: bool,
    /// Whether standard error was truncated.
    pub stderr_truncated: bool,
    /// Why the execution did not succeed, in a sentence.
    pub error: Option<String>,
    /// The exit code of the program; -1 if it did not exit by itself.
    pub exit_code: i32,
    /// The name of the signal that killed the program, if the supervisor did not send it.
    pub signal: Option<String>,
    /// Wall-clock time of the run stage, in milliseconds.
    pub execution_time_ms: f64,
    /// CPU time of the run stage, in milliseconds.
    pub cpu_time_ms: f64,
    /// Peak memory of all stages, in KiB.
    pub memory_used_kb: u64,
    /// The same in MiB, rounded up.
    pub memory_used_mb: u64,
    /// Each stage that was started.
    pub stages: Vec<StageReport>,
    /// Collected files.
    pub output_files: Vec<OutputFile>,
    /// Files that a pattern selected and that were not collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_files: Vec<SkippedFile>,
    /// What happened to the workspace, if the request named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceReport>,
    /// Connections and DNS queries, if the network policy allows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkReport>,
    /// Protections that were in force.
    pub enforced: Vec<Protection>,
    /// Protections that were missing, with the permission of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Protection>,
    /// System calls that were denied.
    pub violations: Vec<Violation>,
    /// Where the time went, in milliseconds.
    pub timings_ms: Timings,
    /// When the execution was accepted.
    #[serde(serialize_with = "to_second")]
    pub created_at: DateTime<Utc>,
}

/// One stage of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Which stage.
    pub name: Stage,
    /// How it ended.
    pub status: Status,
    /// The exit code of the program; -1 if it did not exit by itself.
    pub exit_code: i32,
    /// The signal that killed the program, if the supervisor did not send it.
    pub signal: Option<String>,
    /// Resource usage.
    #[serde(flatten)]
    pub usage: StageUsage,
    /// Whether the result came from the compile cache.
    pub cached: bool,
    /// How much of the sandbox existed before the request: nothing (`cold`), the sandbox
    /// (`prepared`), or the sandbox with the runtime waiting in it (`warm`).
    #[serde(default)]
    pub start: Start,
    /// Overhead before the program started. The JSON form contains only the sum over all stages.
    #[serde(skip)]
    pub prepare_time: Duration,
    /// Overhead after the program ended.
    #[serde(skip)]
    pub collect_time: Duration,
    /// Output of the compiler, warnings included. The output of the run stage is in the report
    /// itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// Resource usage of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageUsage {
    /// Wall-clock time from the program's start to its end.
    #[serde(
        rename = "wall_time_ms",
        serialize_with = "to_millis",
        deserialize_with = "from_millis"
    )]
    pub wall_time: Duration,
    /// CPU time in user mode.
    #[serde(
        rename = "cpu_user_ms",
        serialize_with = "to_millis",
        deserialize_with = "from_millis"
    )]
    pub cpu_user: Duration,
    /// CPU time in kernel mode.
    #[serde(
        rename = "cpu_system_ms",
        serialize_with = "to_millis",
        deserialize_with = "from_millis"
    )]
    pub cpu_system: Duration,
    /// Peak memory, in KiB.
    pub memory_peak_kb: u64,
    /// Peak number of processes and threads.
    pub processes_peak: u64,
    /// Bytes read, from files and pipes.
    pub io_read_bytes: u64,
    /// Bytes written, to files and pipes.
    pub io_write_bytes: u64,
}

/// Where the time of an execution went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Waiting in the queue.
    pub queue: f64,
    /// Building sandboxes and placing files.
    pub prepare: f64,
    /// Compiling.
    pub compile: f64,
    /// Running.
    pub run: f64,
    /// Collecting files and destroying sandboxes.
    pub collect: f64,
}

/// A denied system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Its name.
    pub syscall: String,
    /// How often it was denied.
    pub count: u64,
}

/// A collected file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its path, relative to the work directory.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its content, in hexadecimal; empty in reports of versions that did not
    /// compute it.
    #[serde(default)]
    pub sha256: String,
    /// Encoding of `content`.
    pub encoding: FileEncoding,
    /// The content, as text if it is valid UTF-8.
    pub content: String,
}

/// How the content of a file is encoded in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileEncoding {
    /// As text.
    #[serde(rename = "utf-8")]
    Utf8,
    /// As base64.
    #[serde(rename = "base64")]
    Base64,
}

impl Report {
    /// The report of an execution that started no stage.
    pub fn new(
        id: ExecutionId,
        status: Status,
        language: &str,
        version: &str,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            status,
            stage: Stage::Run,
            success: status == Status::Completed,
            language: language.to_owned(),
            version: version.to_owned(),
            isolation: Isolation::Native,
            isolation_reason: None,
            image: None,
            stdout: String::new(),
            stderr: String::new(),
            output: String::new(),
            stdout_base64: None,
            stderr_base64: None,
            stdout_truncated: false,
            stderr_truncated: false,
            error: None,
            exit_code: -1,
            signal: None,
            execution_time_ms: 0.0,
            cpu_time_ms: 0.0,
            memory_used_kb: 0,
            memory_used_mb: 0,
            stages: Vec::new(),
            output_files: Vec::new(),
            skipped_files: Vec::new(),
            workspace: None,
            network: None,
            enforced: Vec::new(),
            missing: Vec::new(),
            violations: Vec::new(),
            timings_ms: Timings::default(),
            created_at,
        }
    }

    /// The exit code for a command that ran this execution.
    pub fn exit_code_for_shell(&self) -> u8 {
        match self.status {
            Status::Completed => 0,
            Status::RuntimeError => self.exit_code_of_program(),
            Status::CompileError => 65,
            Status::Timeout => 124,
            Status::MemoryLimit => 137,
            Status::OutputLimit => 153,
            Status::Cancelled => 130,
            Status::Error | Status::Queued | Status::Running => 125,
        }
    }

    fn exit_code_of_program(&self) -> u8 {
        match self.signal.as_deref().and_then(signal_number) {
            Some(signal) => 128_u8.saturating_add(signal),
            None => u8::try_from(self.exit_code).unwrap_or(1),
        }
    }
}

impl StageUsage {
    /// User and system time.
    pub fn cpu_time(&self) -> Duration {
        self.cpu_user + self.cpu_system
    }
}

impl From<&CollectedFile> for OutputFile {
    fn from(file: &CollectedFile) -> Self {
        let (encoding, content) = match std::str::from_utf8(&file.contents) {
            Ok(text) => (FileEncoding::Utf8, text.to_owned()),
            Err(_) => (FileEncoding::Base64, STANDARD.encode(&file.contents)),
        };
        let (path, size) = (file.path.clone(), file.contents.len() as u64);
        Self { path, size, sha256: hexadecimal(&Sha256::digest(&file.contents)), encoding, content }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Linux signal numbers by name, as x86-64 and aarch64 share them.
const SIGNALS: &[(u8, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (16, "SIGSTKFLT"),
    (17, "SIGCHLD"),
    (18, "SIGCONT"),
    (19, "SIGSTOP"),
    (20, "SIGTSTP"),
    (21, "SIGTTIN"),
    (22, "SIGTTOU"),
    (23, "SIGURG"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
    (28, "SIGWINCH"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
    (31, "SIGSYS"),
];

/// The name of a signal; real-time signals are named by number.
pub fn signal_name(number: i32) -> String {
    SIGNALS
        .iter()
        .find(|(known, _)| i32::from(*known) == number)
        .map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

fn signal_number(name: &str) -> Option<u8> {
    let known = SIGNALS.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
    known.or_else(|| name.strip_prefix("SIG")?.parse().ok())
}

/// Rounded to microseconds: no clock here is more precise.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

impl Timings {
    /// A duration in milliseconds, as these fields contain it.
    pub fn millis(duration: Duration) -> f64 {
        millis(duration)
    }
}

fn to_millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(millis(*duration))
}

fn from_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(millis / 1000.0).map_err(D::Error::custom)
}

fn to_second<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The text, and the raw bytes in base64 if they are not valid UTF-8.
pub fn text_and_base64(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(STANDARD.encode(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names_both_ways() {
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_number("SIGSEGV"), Some(11));
        assert_eq!(signal_number(&signal_name(40)), Some(40));
    }

    #[test]
    fn figures_read_back_and_a_negative_time_does_not() {
        let figures =
            StageUsage { wall_time: Duration::from_micros(11_800), ..StageUsage::default() };
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(serde_json::from_str::<StageUsage>(&text).unwrap(), figures);
        let wrong = text.replace("11.8", "-1");
        assert!(serde_json::from_str::<StageUsage>(&wrong).is_err(), "{wrong} was taken");
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_beside_it() {
        assert_eq!(text_and_base64(b"ok"), ("ok".into(), None));
        assert_eq!(text_and_base64(b"\xffx"), ("\u{fffd}x".into(), Some("/3g=".into())));
    }

    #[test]
    fn a_file_that_is_no_text_travels_as_base64() {
        let file = CollectedFile { path: "a".into(), contents: vec![0xff], executable: false };
        let file = OutputFile::from(&file);
        assert_eq!((file.encoding, file.size), (FileEncoding::Base64, 1));
        let hash = "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89";
        assert_eq!(file.sha256, hash);
    }
}
