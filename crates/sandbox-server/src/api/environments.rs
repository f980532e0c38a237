use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::{Environment, EnvironmentName, PackageSpec};
use sandbox_api::{Code, NewEnvironment, Problem};
use sandbox_store::Permission;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::Json;
use super::caller::{Caller, Execute, Read};
use super::query::{Query, Wait};
use super::refusal::Refusal;
use super::schema;
use crate::environments::{Build, Found, Progress, Wanted};
use crate::policy::permissions;
use crate::state::AppState;

const MAX_PACKAGES: usize = 200;

/// Packages under a name, which a request's `environment` may ask for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EnvironmentEntry {
    name: String,
    /// Only one that is `ready` can be used.
    status: EnvironmentStatus,
    /// Whether it is the server's own, which everyone may use and nobody remove.
    shared: bool,
    language: String,
    /// The version of the language, once it is built.
    version: Option<String>,
    /// What was asked for.
    requested: Vec<String>,
    /// What that came to.
    packages: Vec<PackageEntry>,
    /// Why it could not be built, if it could not.
    problem: Option<Problem>,
    /// When it was built; before that, when it was asked for.
    #[schema(format = DateTime)]
    created_at: String,
}

/// How far an environment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EnvironmentStatus {
    Building,
    Ready,
    Failed,
}

/// A package of an environment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PackageEntry {
    name: String,
    version: String,
}

/// The name of an environment in a path.
pub(super) struct Name(EnvironmentName);

/// The environments.
#[utoipa::path(
    get,
    path = "/api/v1/environments",
    tag = "environments",
    operation_id = "environments",
    responses((status = 200, description = "Your own and those of the server, by name", body = Vec<EnvironmentEntry>))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Answer<Vec<EnvironmentEntry>>, Refusal> {
    query.end()?;
    let listed = state.environments.list(caller.identity().key.clone()).await?;
    let own = listed.built.into_iter().map(|environment| built(environment, false));
    let mut entries: Vec<_> = own.chain(listed.builds.iter().map(of_build)).collect();
    // One's own stands before the server's of the same name.
    let shared = listed.shared.into_iter().map(|environment| built(environment, true));
    let shared: Vec<_> =
        shared.filter(|entry| entries.iter().all(|own| own.name != entry.name)).collect();
    entries.extend(shared);
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Answer(entries))
}

/// Build one.
///
/// The packages are fetched and installed once; executions that name the environment then find them.
/// Waits until it is built. If that takes longer than the server waits, or the client does not want to
/// wait, the answer says that it is building, and where to ask for it.
#[utoipa::path(
    post,
    path = "/api/v1/environments",
    tag = "environments",
    operation_id = "build_environment",
    params(
        ("wait" = inline(Option<schema::WaitParameter>), Query, description = "`false`: do not wait; a number: wait so many seconds"),
        ("Prefer" = Option<String>, Header, description = "`respond-async`, or `wait=SECONDS`"),
    ),
    request_body = NewEnvironment,
    responses(
        (status = 201, description = "It is built", body = EnvironmentEntry, headers(("Location" = String, description = "Where it is"))),
        (status = 202, description = "It is not built yet", body = EnvironmentEntry, headers(("Location" = String, description = "Where it will be"))),
        (status = 404, description = "It was removed while it was built", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There is one of this name, or as many as there may be", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn build(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    headers: HeaderMap,
    Json(asked): Json<NewEnvironment>,
) -> Result<Response, Refusal> {
    let wait = query.only_wait()?.or(Wait::preferred(&headers)).unwrap_or(Wait::Long);
    permissions::require(caller.identity(), Permission::Packages, "packages")?;
    let owner = caller.identity().key.clone();
    let wanted = checked(&asked)?;
    let name = wanted.name.clone();
    let build = state.environments.begin(owner.clone(), wanted).await?;
    let patience = wait.patience(state.config.wait_limit);
    // Both answers are right: the entry then says how far it is.
    let _ = tokio::time::timeout(patience, build.ended()).await;
    let location = [(LOCATION, format!("/api/v1/environments/{name}"))];
    match build.progress() {
        Progress::Building => {
            Ok((StatusCode::ACCEPTED, location, Answer(of_build(&build))).into_response())
        }
        Progress::Built(environment) => {
            Ok((StatusCode::CREATED, location, Answer(built(*environment, false))).into_response())
        }
        Progress::Failed(problem) => {
            state.environments.forget(owner, &name);
            Err(problem.into())
        }
    }
}

/// One of them.
#[utoipa::path(
    get,
    path = "/api/v1/environments/{name}",
    tag = "environments",
    operation_id = "environment",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "What is in it, or how far it is", body = EnvironmentEntry))
)]
pub(super) async fn one(
    State(state): State<AppState>,
    caller: Caller<Read>,
    query: Query,
    Name(name): Name,
) -> Result<Answer<EnvironmentEntry>, Refusal> {
    query.end()?;
    let found = state.environments.find(caller.identity().key.clone(), name).await?;
    Ok(Answer(match found {
        Found::Own(environment) => built(environment, false),
        Found::Shared(environment) => built(environment, true),
        Found::Build(build) => of_build(&build),
    }))
}

/// Remove one.
///
/// One that is being built is not built any further.
#[utoipa::path(
    delete,
    path = "/api/v1/environments/{name}",
    tag = "environments",
    operation_id = "remove_environment",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 204, description = "It is gone"))
)]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller<Execute>,
    query: Query,
    Name(name): Name,
) -> Result<StatusCode, Refusal> {
    query.end()?;
    state.environments.remove(caller.identity().key.clone(), name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn checked(asked: &NewEnvironment) -> Result<Wanted, Refusal> {
    let language = match &asked.version {
        None => asked.language.clone(),
        Some(_) if asked.language.contains('@') => {
            return Err(Refusal::invalid("version", "the language names a version already"));
        }
        Some(version) => format!("{}@{version}", asked.language),
    };
    if !(1..=MAX_PACKAGES).contains(&asked.packages.len()) {
        let reason = format!("name 1 to {MAX_PACKAGES} of them, not {}", asked.packages.len());
        return Err(Refusal::invalid("packages", reason));
    }
    let packages: Result<Vec<PackageSpec>, _> =
        asked.packages.iter().map(|package| package.parse()).collect();
    Ok(Wanted {
        name: asked.name.parse().map_err(|error| Refusal::invalid("name", error))?,
        language: language.parse().map_err(|error| Refusal::invalid("language", error))?,
        packages: packages.map_err(|error| Refusal::invalid("packages", error))?,
    })
}

fn built(environment: Environment, shared: bool) -> EnvironmentEntry {
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
        created_at: written(environment.created_at),
    }
}

fn of_build(build: &Arc<Build>) -> EnvironmentEntry {
    let (status, problem) = match build.progress() {
        Progress::Built(environment) => return built(*environment, false),
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
        created_at: written(build.begun_at),
    }
}

fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl<S: Sync + Send> FromRequestParts<S> for Name {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        let name = params.as_ref().and_then(|params| {
            let (_, text) = params.iter().find(|(param, _)| *param == "name")?;
            text.parse().ok()
        });
        // What cannot be a name names nothing.
        let unknown = || Problem::new(Code::NotFound, "there is no environment of this name");
        name.map(Self).ok_or_else(|| unknown().into())
    }
}
