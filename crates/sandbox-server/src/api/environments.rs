use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::{Environment, EnvironmentName, PackageSpec};
use sandbox_api::{
    Code, EnvironmentEntry, EnvironmentStatus, NewEnvironment, PackageEntry, Problem,
};
use sandbox_store::Permission;

use super::body::JsonBody;
use super::caller::{Caller, Execute, Read};
use super::error::ApiError;
use super::parameters;
use super::query::{Query, Wait};
use crate::environments::{Build, Found, Progress, Wanted};
use crate::policy::permissions;
use crate::state::AppState;

const MAX_PACKAGES: usize = 200;

/// The name of an environment in a path.
pub(super) struct Name(EnvironmentName);

/// List environments.
#[utoipa::path(
    get,
    path = "/api/v1/environments",
    tag = "environments",
    operation_id = "environments",
    responses((status = 200, description = "The client's own environments and the shared ones, by name", body = Vec<EnvironmentEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Json<Vec<EnvironmentEntry>>, ApiError> {
    query.reject_unknown()?;
    let listed = state.environments.list(caller.identity().key.clone()).await?;
    let own = listed.built.into_iter().map(|environment| entry(environment, false));
    let mut entries: Vec<_> = own.chain(listed.builds.iter().map(build_entry)).collect();
    // An environment of the client hides a shared one of the same name.
    let shared = listed.shared.into_iter().map(|environment| entry(environment, true));
    let shared: Vec<_> =
        shared.filter(|entry| entries.iter().all(|own| own.name != entry.name)).collect();
    entries.extend(shared);
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Json(entries))
}

/// Build an environment.
///
/// Fetches and installs the packages once; executions that name the environment use them. Waits for the build. If it
/// is not finished when the wait ends, the response has the status `building`.
#[utoipa::path(
    post,
    path = "/api/v1/environments",
    tag = "environments",
    operation_id = "build_environment",
    params(
        ("wait" = inline(Option<parameters::WaitParameter>), Query, description = "How long to wait: `true` (default) for the server's maximum, `false` not at all, or seconds"),
        ("Prefer" = Option<String>, Header, description = "`respond-async` or `wait=SECONDS` (RFC 7240); `wait` takes precedence"),
    ),
    request_body = NewEnvironment,
    responses(
        (status = 201, description = "Built", body = EnvironmentEntry, headers(("Location" = String, description = "The path of the environment"))),
        (status = 202, description = "Not built yet", body = EnvironmentEntry, headers(("Location" = String, description = "The path of the environment"))),
        (status = 404, description = "Removed during the build", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The name exists already, or the client has the maximum number of environments", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn build(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    JsonBody(request): JsonBody<NewEnvironment>,
) -> Result<Response, ApiError> {
    let wait = query.only_wait()?.or(Wait::from_prefer_header(&headers)).unwrap_or(Wait::Max);
    permissions::require(caller.identity(), Permission::Packages, "packages")?;
    let owner = caller.identity().key.clone();
    let wanted = parse(&request)?;
    let name = wanted.name.clone();
    let build = state.environments.begin(owner.clone(), wanted).await?;
    let timeout = wait.timeout(state.config.wait_limit);
    // After a timeout, the response has the status `building`.
    let _ = tokio::time::timeout(timeout, build.ended()).await;
    let location = [(LOCATION, format!("/api/v1/environments/{name}"))];
    match build.progress() {
        Progress::Building => {
            Ok((StatusCode::ACCEPTED, location, Json(build_entry(&build))).into_response())
        }
        Progress::Built(environment) => {
            Ok((StatusCode::CREATED, location, Json(entry(*environment, false))).into_response())
        }
        Progress::Failed(problem) => {
            state.environments.forget(owner, &name);
            Err(problem.into())
        }
    }
}

/// Get an environment.
#[utoipa::path(
    get,
    path = "/api/v1/environments/{name}",
    tag = "environments",
    operation_id = "environment",
    params(("name" = String, Path, description = "The name of the environment")),
    responses((status = 200, description = "The environment", body = EnvironmentEntry))
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    Name(name): Name,
) -> Result<Json<EnvironmentEntry>, ApiError> {
    query.reject_unknown()?;
    let found = state.environments.find(caller.identity().key.clone(), name).await?;
    Ok(Json(match found {
        Found::Own(environment) => entry(environment, false),
        Found::Shared(environment) => entry(environment, true),
        Found::Build(build) => build_entry(&build),
    }))
}

/// Remove an environment.
///
/// Cancels the build if it is not finished.
#[utoipa::path(
    delete,
    path = "/api/v1/environments/{name}",
    tag = "environments",
    operation_id = "remove_environment",
    params(("name" = String, Path, description = "The name of the environment")),
    responses((status = 204, description = "Removed"))
)]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    query.reject_unknown()?;
    state.environments.remove(caller.identity().key.clone(), name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse(request: &NewEnvironment) -> Result<Wanted, ApiError> {
    let language = match &request.version {
        None => request.language.clone(),
        Some(_) if request.language.contains('@') => {
            return Err(ApiError::invalid("version", "'language' already has a version"));
        }
        Some(version) => format!("{}@{version}", request.language),
    };
    if !(1..=MAX_PACKAGES).contains(&request.packages.len()) {
        let reason = format!("must have 1 to {MAX_PACKAGES} items, not {}", request.packages.len());
        return Err(ApiError::invalid("packages", reason));
    }
    let packages: Result<Vec<PackageSpec>, _> =
        request.packages.iter().map(|package| package.parse()).collect();
    Ok(Wanted {
        name: request.name.parse().map_err(|error| ApiError::invalid("name", error))?,
        language: language.parse().map_err(|error| ApiError::invalid("language", error))?,
        packages: packages.map_err(|error| ApiError::invalid("packages", error))?,
    })
}

fn entry(environment: Environment, shared: bool) -> EnvironmentEntry {
    let lock = environment.lock;
    let packages = lock.packages.into_iter();
    EnvironmentEntry {
        name: environment.name.to_string(),
        status: EnvironmentStatus::Ready,
        shared,
        language: lock.language,
        version: Some(lock.version),
        requested: lock.requested.iter().map(ToString::to_string).collect(),
        packages: packages
            .map(|package| PackageEntry { name: package.name, version: package.version })
            .collect(),
        problem: None,
        created_at: rfc3339(environment.created_at),
    }
}

fn build_entry(build: &Arc<Build>) -> EnvironmentEntry {
    let (status, problem) = match build.progress() {
        Progress::Built(environment) => return entry(*environment, false),
        Progress::Building => (EnvironmentStatus::Building, None),
        Progress::Failed(problem) => (EnvironmentStatus::Failed, Some(problem)),
    };
    let wanted = &build.wanted;
    EnvironmentEntry {
        name: wanted.name.to_string(),
        status,
        shared: false,
        language: wanted.language.name().to_owned(),
        version: wanted.language.version().map(ToOwned::to_owned),
        requested: wanted.packages.iter().map(ToString::to_string).collect(),
        packages: Vec::new(),
        problem,
        created_at: rfc3339(build.begun_at),
    }
}

fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl<S: Sync + Send> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        let name = params.as_ref().and_then(|params| {
            let (_, text) = params.iter().find(|(param, _)| *param == "name")?;
            text.parse().ok()
        });
        // An invalid name matches no environment.
        let unknown = || Problem::new(Code::NotFound, "no environment has this name");
        name.map(Self).ok_or_else(|| unknown().into())
    }
}
