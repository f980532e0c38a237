use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to build an environment: packages installed once, under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvironment {
    /// The name by which executions select the environment.
    #[schema(example = "plots", pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    pub name: String,
    /// The language, by name or alias.
    #[schema(example = "python", pattern = "^[A-Za-z0-9+#._-]{1,32}(@[A-Za-z0-9+._-]{1,32})?$")]
    pub language: String,
    /// The required version of the language. Default: the installed version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9+._-]{1,32}$")]
    pub version: Option<String>,
    /// Package specifiers in the syntax of the language's package manager.
    #[schema(example = json!(["six"]), min_items = 1, max_items = 200)]
    pub packages: Vec<String>,
}
