use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{FileInput, NetworkRequest};

/// A request to run code. Either `code` or `files` says what; everything else has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The language, by name or alias.
    #[schema(example = "python", pattern = "^[A-Za-z0-9+#._-]{1,32}(@[A-Za-z0-9+._-]{1,32})?$")]
    pub language: String,
    /// Only this version of it will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9+._-]{1,32}$")]
    pub version: Option<String>,
    /// The program as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "print(6 * 7)")]
    pub code: Option<String>,
    /// The program as files, the one it starts with first; beside `code`, files that it finds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10000)]
    pub files: Vec<FileInput>,
    /// Its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 4096)]
    pub args: Vec<String>,
    /// Variables in its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Wall time of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub timeout_ms: Option<u64>,
    /// CPU time of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub cpu_time_ms: Option<u64>,
    /// Wall time of the compile stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub compile_timeout_ms: Option<u64>,
    /// Memory of the run stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_048_576)]
    pub memory_limit_mb: Option<u64>,
    /// CPUs' worth of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.01, maximum = 1024)]
    pub cpus: Option<f64>,
    /// Processes and threads at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_768)]
    pub pids: Option<u32>,
    /// Bytes it may write to its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_048_576)]
    pub disk_mb: Option<u64>,
    /// Bytes it may print, and as many again in collected files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_048_576)]
    pub output_limit_kb: Option<u64>,
    /// What it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRequest>,
    /// What builds the walls: one of those that the server permits, or `auto` for the server's choice, as without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Patterns of files to bring back; the name of a directory brings back everything in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// A frame around the code, which is `{{ code }}` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Texts for the other places of the template: `{{ name }}` in it is the text of that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub template_values: BTreeMap<String, String>,
    /// Packages that are there for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 200)]
    pub packages: Vec<String>,
    /// Whether packages that are installed on the server's host for its own use can be imported (true). False hides them, for
    /// languages where that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_packages: Option<bool>,
    /// A named environment that is there for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub environment: Option<String>,
    /// A named directory that outlives it: `NAME`, or `NAME:ro` to keep nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Where the report is sent when it is there: an `http` or `https` URL at a public address, or one that
    /// the server is set up to permit. It is sent by POST as `{"type": "execution.finished", "timestamp": …,
    /// "data": REPORT}`, signed as Standard Webhooks has it, and again for some hours until a receiver
    /// answers with a status from 200 to 299. `webhook-id` is the execution's id: what comes twice can be
    /// told by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Words of the client's own, to find it again by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Protections it can do without; needs the operator's permission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_missing: Vec<String>,
    /// How often to sample what it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 10, maximum = 60_000)]
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
