use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Problem;

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

/// A named set of packages, selected by `environment` of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentEntry {
    /// The name.
    pub name: String,
    /// Executions can use it once it is `ready`.
    pub status: EnvironmentStatus,
    /// Whether it belongs to the server: all clients can use it, and none can remove it.
    pub shared: bool,
    /// The language, by name.
    pub language: String,
    /// The version of the language. Null until the environment is built, unless the request named one.
    pub version: Option<String>,
    /// The requested packages.
    pub requested: Vec<String>,
    /// The installed packages, dependencies included.
    pub packages: Vec<PackageEntry>,
    /// Why the build failed.
    pub problem: Option<Problem>,
    /// When it was built; before that, when it was requested.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The status of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentStatus {
    /// The build has not finished.
    Building,
    /// Executions can use it.
    Ready,
    /// The build failed.
    Failed,
}

/// A package of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PackageEntry {
    /// The name of the package.
    pub name: String,
    /// The installed version.
    pub version: String,
}
