use axum::Json as Answer;
use chrono::SecondsFormat;
use sandbox::{Environment, Environments, with_causes};
use sandbox_api::{Code, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::{Caller, Read};
use super::query::Query;
use super::refusal::Refusal;

/// Packages under a name, which a request's `environment` may ask for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EnvironmentEntry {
    name: String,
    language: String,
    /// The version of the language.
    version: String,
    /// What was asked for.
    requested: Vec<String>,
    /// What that came to.
    packages: Vec<PackageEntry>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A package of an environment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PackageEntry {
    name: String,
    version: String,
}

/// The environments.
#[utoipa::path(
    get,
    path = "/api/v1/environments",
    tag = "server",
    operation_id = "environments",
    responses((status = 200, description = "All environments, by name", body = Vec<EnvironmentEntry>))
)]
pub(super) async fn list(
    _caller: Caller<Read>,
    query: Query,
) -> Result<Answer<Vec<EnvironmentEntry>>, Refusal> {
    query.end()?;
    let failed = |reason: String| {
        tracing::error!(reason, "the environments could not be read");
        Problem::new(Code::Internal, "the environments could not be read")
    };
    let listed = tokio::task::spawn_blocking(Environments::list).await;
    let listed = listed.map_err(|error| failed(error.to_string()))?;
    let listed = listed.map_err(|error| failed(with_causes(&error)))?;
    Ok(Answer(listed.into_iter().map(EnvironmentEntry::from).collect()))
}

impl From<Environment> for EnvironmentEntry {
    fn from(environment: Environment) -> Self {
        let lock = environment.lock;
        let packages = lock.packages.into_iter();
        Self {
            name: environment.name.to_string(),
            language: lock.language,
            version: lock.version,
            requested: lock.requested.iter().map(|spec| spec.as_str().to_owned()).collect(),
            packages: packages
                .map(|package| PackageEntry { name: package.name, version: package.version })
                .collect(),
            created_at: environment.created_at.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}
