use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The server is up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// The server's version.
    pub version: String,
}

/// The server can run code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// `ready`.
    pub status: String,
    /// Protections that the preferred isolation backend enforces on this host.
    pub enforceable: Vec<String>,
    /// Protections that it cannot enforce: executions fail unless `allow_missing` lists them.
    pub missing: Vec<String>,
    /// The permitted isolation backends: values of `isolation`, besides `auto`.
    pub isolations: Vec<String>,
    /// The isolation backend that `auto` selects.
    pub preferred: String,
}
