use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A named directory that outlives executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceEntry {
    /// The name.
    pub name: String,
    /// Size of its files, in bytes.
    pub bytes: u64,
    /// Number of files, directories and links.
    pub files: u64,
    /// When it was last saved.
    #[schema(format = DateTime)]
    pub saved_at: String,
    /// When an execution last used it.
    #[schema(format = DateTime)]
    pub used_at: String,
    /// Whether an unfinished execution can write to it.
    pub in_use: bool,
}
