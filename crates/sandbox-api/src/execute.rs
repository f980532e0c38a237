use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::{FileInput, NetworkRequest};

/// A request to run code. `code` or `files` is required; everything else has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The language, by name or alias.
    #[schema(example = "python", pattern = "^[A-Za-z0-9+#._-]{1,32}(@[A-Za-z0-9+._-]{1,32})?$")]
    pub language: String,
    /// The required version of the language. Default: the installed version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9+._-]{1,32}$")]
    pub version: Option<String>,
    /// The source code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "print(6 * 7)")]
    pub code: Option<String>,
    /// Files for the work directory. Without `code`, the first is the entry point of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10000)]
    pub files: Vec<FileInput>,
    /// The standard input. Default: empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Whether the client sends the standard input to `POST /api/v1/execute/{id}/stdin` while the program runs, without
    /// a limit of its size. Excludes `stdin`, and requires `wait=false` or `Accept: text/event-stream`. Such an execution is not repeated if the server
    /// stops before its end. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin_stream: bool,
    /// The command-line arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 4096)]
    pub args: Vec<String>,
    /// Environment variables of the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Wall-clock time limit of the run stage, in milliseconds; fractions allowed. Default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub timeout_ms: Option<f64>,
    /// CPU time limit of the run stage, in milliseconds, for all its processes together; fractions allowed. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub cpu_time_ms: Option<f64>,
    /// Wall-clock time limit of the compile stage, in milliseconds; fractions allowed. Default: 30000.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub compile_timeout_ms: Option<f64>,
    /// Memory limit of the run stage, in MiB, for all its processes and the files in `/tmp` together; fractions allowed.
    /// Default: 256.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 1, maximum = 1_048_576)]
    pub memory_limit_mb: Option<f64>,
    /// Memory limit of the compile stage, in MiB; fractions allowed. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 1, maximum = 1_048_576)]
    pub compile_memory_mb: Option<f64>,
    /// CPU limit; fractions allowed. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.01, maximum = 1024)]
    pub cpus: Option<f64>,
    /// Maximum number of processes and threads at a time. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_768)]
    pub pids: Option<u32>,
    /// Maximum size of the files in the work directory and `/tmp` together, in MiB; fractions allowed. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 0.0625, maximum = 1_048_576)]
    pub disk_mb: Option<f64>,
    /// Maximum size of standard output and standard error together, in KiB; fractions allowed. Collected files may have as
    /// much again. Default: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 0.000_976_562_5, maximum = 1_048_576)]
    pub output_limit_kb: Option<f64>,
    /// Maximum number of open files of one process. Default: 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 4, maximum = 1_048_576)]
    pub open_files: Option<u32>,
    /// The network access. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRequest>,
    /// The isolation backend: one that the server permits, or `auto` (default) for the server's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The directory, below the work directory, that the program starts in. Default: the work directory itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Glob patterns of files to return after the run. The name of a directory returns all files in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// A template around the code, which takes the place of `{{ code }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Values of the template's other placeholders, by name: `{{ name }}` becomes the value of `name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub template_values: BTreeMap<String, String>,
    /// Packages to install for the program, in the syntax of the language's package manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 200)]
    pub packages: Vec<String>,
    /// Whether a program that was compiled before is taken from the cache. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_cache: Option<bool>,
    /// Whether the program can import packages that are installed on the server's host. Default: true. Not every
    /// language can hide them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_packages: Option<bool>,
    /// The name of an environment whose packages the program uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub environment: Option<String>,
    /// The workspace, a named directory that outlives the execution: `NAME`, or `NAME:ro` to discard changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Directories or files of the server's host that the program sees, as `HOST-PATH:PATH` (read-only) or
    /// `HOST-PATH:PATH:rw`. They must be in a directory that the server's setting `volumes_from` names. Requires the
    /// permission `volumes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64, example = json!(["/srv/data:/data"]))]
    pub volumes: Vec<String>,
    /// The URL that receives the report when the execution finishes: `http` or `https`, at a public address or one
    /// that the server is configured to permit. The server sends `{"type": "execution.finished", "timestamp": …,
    /// "data": REPORT}` by POST, signed according to Standard Webhooks, and retries for some hours until the
    /// receiver responds with a status from 200 to 299. The `webhook-id` header is the execution's id: use it to
    /// detect duplicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Client-defined labels; usable as filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Protections that may be missing on the host. Requires the permission `allow_missing`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_missing: Vec<String>,
    /// Interval of resource usage samples, in milliseconds; fractions allowed. Default: no samples.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "shortest")]
    #[schema(minimum = 10, maximum = 60_000)]
    pub usage_interval_ms: Option<f64>,
}

/// Serializes a whole number without a fraction, as clients write it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::ref_option,
    reason = "it is whole and within the range; serde passes references"
)]
fn shortest<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(number) if number.fract() == 0.0 && (0.0..9e15).contains(number) => {
            serializer.serialize_u64(*number as u64)
        }
        number => number.serialize(serializer),
    }
}

/// The response to an asynchronous request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The id of the execution.
    #[schema(example = "exec_01JCQ0Z5V8W3M6T2K9R4")]
    pub id: String,
    /// The status: `queued`, or a later one if this repeats an earlier request.
    pub status: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_rejected_by_name() {
        let text = r#"{"language": "python", "code": "1", "colour": "red"}"#;
        let error = serde_json::from_str::<ExecuteRequest>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn numbers_are_serialized_as_clients_write_them() {
        for number in ["1", "1.5", "300000", "0.000001", "9007199254740992.0"] {
            let text = format!(r#"{{"language":"python","code":"1","timeout_ms":{number}}}"#);
            let request: ExecuteRequest = serde_json::from_str(&text).unwrap();
            let written = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<ExecuteRequest>(&written).unwrap(), request);
            assert!(
                number.starts_with('9') || number == "0.000001" || written == text,
                "{written}"
            );
        }
    }

    #[test]
    fn unset_fields_are_not_serialized() {
        let request = ExecuteRequest {
            language: "python".into(),
            code: Some("1".into()),
            ..ExecuteRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"language":"python","code":"1"}"#);
        assert_eq!(serde_json::from_str::<ExecuteRequest>(&text).unwrap(), request);
    }
}
