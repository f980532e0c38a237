use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use sandbox_api::{Code, Problem};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Content, Header, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder, Responses,
};
use utoipa::{Modify, OpenApi};

use super::{
    batch, environments, execute, executions, health, narrow, ready, runtimes, schema, stream,
    workspaces,
};
use crate::config::Config;
use crate::state::AppState;

/// The API as OpenAPI 3.1.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "sandboxd",
        description = "Runs code that nobody trusts, safely, and reports exactly what happened."
    ),
    paths(
        execute::execute,
        execute::report,
        execute::cancel,
        stream::stream,
        batch::batch,
        executions::list,
        runtimes::list,
        environments::list,
        environments::build,
        environments::one,
        environments::remove,
        workspaces::list,
        workspaces::show,
        workspaces::import,
        workspaces::remove,
        workspaces::export,
        health::health,
        ready::ready,
        health::metrics
    ),
    components(schemas(schema::Event, Problem, Code)),
    tags(
        (name = "executions", description = "Run code, and see what came of it"),
        (name = "environments", description = "Packages under a name, installed once"),
        (name = "workspaces", description = "Directories that outlive executions"),
        (name = "server", description = "What this server has and how it is"),
    ),
    modifiers(&Everywhere)
)]
struct Api;

/// What every operation has in common: keys, and problems.
struct Everywhere;

impl Modify for Everywhere {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
        components.add_security_scheme("header", SecurityScheme::ApiKey(header));
        components.responses.insert("Problem".to_owned(), problem().into());
        components.responses.insert("Later".to_owned(), later().into());
        for (path, item) in &mut document.paths.paths {
            let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                add_problems(path, operation);
                for parameter in operation.parameters.iter_mut().flatten() {
                    if let RefOr::T(Parameter { schema: Some(schema), .. }) = parameter {
                        remove_null(schema);
                    }
                }
            }
        }
    }
}

/// What can go wrong with an operation, beside what it says itself.
fn add_problems(path: &str, operation: &mut Operation) {
    let is_guarded = operation.security.is_none();
    let mut statuses = Vec::new();
    if is_guarded {
        statuses.extend(["400", "401", "403", "429", "503"]);
    }
    if path.ends_with("/ready") {
        statuses.push("503");
    }
    if path.contains('{') {
        statuses.push("404");
    }
    if operation.request_body.is_some() {
        statuses.extend(["408", "413", "415", "422"]);
    }
    for status in statuses {
        add_problem(&mut operation.responses, status);
    }
}

fn add_problem(responses: &mut Responses, status: &str) {
    let name = if matches!(status, "429" | "503") { "Later" } else { "Problem" };
    let described = responses.responses.entry(status.to_owned());
    described.or_insert_with(|| Ref::from_response_name(name).into());
}

/// A parameter that may be left out is still never null, which a URL has no word for.
fn remove_null(schema: &mut RefOr<Schema>) {
    let types = match schema {
        RefOr::T(Schema::Object(object)) => &mut object.schema_type,
        RefOr::T(Schema::Array(array)) => &mut array.schema_type,
        RefOr::T(Schema::OneOf(one_of)) => {
            one_of.items.retain(|item| !is_null(item));
            if let [only] = &*one_of.items {
                *schema = only.clone();
            }
            return;
        }
        _ => return,
    };
    if let SchemaType::Array(several) = types {
        several.retain(|kind| *kind != Type::Null);
        if let [only] = &**several {
            *types = SchemaType::Type(only.clone());
        }
    }
}

fn is_null(schema: &RefOr<Schema>) -> bool {
    let RefOr::T(Schema::Object(object)) = schema else {
        return false;
    };
    object.schema_type == SchemaType::Type(Type::Null)
}

fn problem() -> Response {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new()
        .description("Why the request was not served")
        .content("application/problem+json", content)
        .build()
}

fn later() -> Response {
    let mut response = problem();
    let mut header = Header::new(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)));
    header.description = Some("Seconds after which to ask again".to_owned());
    response.headers.insert("Retry-After".to_owned(), header.into());
    response
}

/// The document as this server serves it.
#[derive(Clone)]
pub(super) struct Documents {
    with_keys: Arc<str>,
    without_keys: Arc<str>,
}

impl Documents {
    /// The document with the numbers of this server.
    pub(super) fn new(config: &Config) -> Self {
        let none: [&str; 0] = [];
        let keys =
            [SecurityRequirement::new("bearer", none), SecurityRequirement::new("header", none)];
        let text = |security: Vec<SecurityRequirement>| {
            let mut document = Api::openapi();
            document.security = Some(security);
            let mut document = serde_json::to_value(document).expect("it is strings and numbers");
            narrow::narrow(&mut document, &config.caps, &config.isolations);
            document.to_string().into()
        };
        // A server without keys takes requests without one.
        let open = std::iter::once(SecurityRequirement::default()).chain(keys.clone());
        Self { without_keys: text(open.collect()), with_keys: text(keys.to_vec()) }
    }
}

/// The document itself.
pub(super) async fn document(
    State(state): State<AppState>,
    Extension(documents): Extension<Documents>,
) -> impl IntoResponse {
    let Documents { with_keys, without_keys } = documents;
    let text = if state.keys.is_empty() { without_keys } else { with_keys };
    ([(CONTENT_TYPE, "application/json")], text.to_string())
}
