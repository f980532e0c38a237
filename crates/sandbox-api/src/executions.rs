use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of executions, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The executions on this page.
    pub executions: Vec<Summary>,
    /// The `cursor` of the next page. Null on the last page.
    pub next: Option<String>,
}

/// A report without output and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The id of the execution.
    pub id: String,
    /// The id of the client's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The language, by name.
    pub language: String,
    /// The version of the language.
    pub version: Option<String>,
    /// The status.
    pub status: String,
    /// The labels of the request.
    pub labels: BTreeMap<String, String>,
    /// Null until the execution has finished.
    pub exit_code: Option<i64>,
    /// Wall-clock time of the run stage, in milliseconds.
    pub execution_time_ms: Option<f64>,
    /// Peak memory of any stage, in KiB.
    pub memory_used_kb: Option<u64>,
    /// Why the execution did not succeed.
    pub error: Option<String>,
    /// When the server accepted the execution.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When the execution started.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// When the execution finished.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}
