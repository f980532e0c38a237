use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a program may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRequest {
    /// How far.
    pub mode: NetworkMode,
    /// Where to, with `allowlist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Whether names are looked up, with `allowlist`.
    #[serde(default)]
    pub dns: bool,
}

/// How far a program's network goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Nowhere.
    None,
    /// To a loopback of its own.
    Localhost,
    /// To the places named.
    Allowlist,
}
