use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeEntry {
    /// The name of the language.
    #[schema(example = "python")]
    pub language: String,
    /// Other names of the language.
    pub aliases: Vec<String>,
    /// File name extensions.
    pub extensions: Vec<String>,
    /// Whether the toolchain is installed.
    pub available: bool,
    /// The default version.
    pub version: Option<String>,
    /// All installed versions, the default first.
    pub versions: Vec<String>,
    /// The container image with the toolchain, if it is not installed on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why the language is not available.
    pub missing: Option<String>,
    /// How the operator installs the toolchain.
    pub install: Option<String>,
}
