use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{FileInput, NetworkRequest};

/// A request to run code. Either `code` or `files` says what; everything else has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The language, by name or alias.
    #[schema(example = "python")]
    pub language: String,
    /// Only this version of it will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The program as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "print(6 * 7)")]
    pub code: Option<String>,
    /// The program as files, the one it starts with first; beside `code`, files that it finds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileInput>,
    /// Its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables in its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Wall time of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// CPU time of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<u64>,
    /// Wall time of the compile stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_timeout_ms: Option<u64>,
    /// Memory of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_mb: Option<u64>,
    /// CPUs' worth of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Processes and threads at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Bytes it may write to its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_mb: Option<u64>,
    /// Bytes it may print, and as many again in collected files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit_kb: Option<u64>,
    /// What it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRequest>,
    /// What builds the walls: `native`, or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Patterns of files to bring back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// A frame around the code, which is `{{ code }}` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Packages that are there for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// A named environment that is there for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// A named directory that outlives it: `NAME`, or `NAME:ro` to keep nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where the report is sent when it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Words of the client's own, to find it again by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Protections it can do without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_missing: Vec<String>,
    /// How often to sample what it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_interval_ms: Option<u64>,
}

/// The answer to a request that is carried out later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The execution's id, to ask for it.
    #[schema(example = "exec_01JCQ0Z5V8W3M6T2K9R4")]
    pub id: String,
    /// `queued`.
    pub status: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let text = r#"{"language": "python", "code": "1", "colour": "red"}"#;
        let error = serde_json::from_str::<ExecuteRequest>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn what_was_not_said_is_not_written() {
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
