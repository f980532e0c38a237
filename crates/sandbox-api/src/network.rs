use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The network access of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRequest {
    /// The network mode.
    pub mode: NetworkMode,
    /// The permitted destinations, for mode `allowlist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Whether any name can be resolved, for mode `allowlist`. Default: false.
    #[serde(default)]
    pub dns: bool,
}

/// The network modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// No network.
    None,
    /// A loopback interface of its own.
    Localhost,
    /// The destinations in `allow` only.
    Allowlist,
}
