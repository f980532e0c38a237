use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use sandbox_api::{Code, Event, Problem};
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
    batch, environments, execute, executions, health, ready, restrict_schema, runtimes, stdin,
    stream, workspaces,
};
use crate::config::Config;
use crate::state::AppState;

/// The OpenAPI 3.1 document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "sandboxd",
        description = "Runs untrusted code in sandboxes and reports what it did."
    ),
    paths(
        execute::execute,
        execute::report,
        execute::cancel,
        stdin::stdin,
        stream::stream,
        batch::batch,
        executions::list,
        runtimes::list,
        environments::list,
        environments::build,
        environments::get,
        environments::remove,
        workspaces::list,
        workspaces::get,
        workspaces::import,
        workspaces::remove,
        workspaces::export,
        health::health,
        ready::ready,
        health::metrics
    ),
    components(schemas(Event, Problem, Code)),
    tags(
        (name = "executions", description = "Run programs and get their reports"),
        (name = "environments", description = "Named sets of packages, installed once"),
        (name = "workspaces", description = "Named directories that outlive executions"),
        (name = "server", description = "Server status"),
    ),
    modifiers(&CommonParts)
)]
struct Api;

/// Adds what all operations have in common: authentication and error responses.
struct CommonParts;

impl Modify for CommonParts {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
        components.add_security_scheme("header", SecurityScheme::ApiKey(header));
        components.responses.insert("Problem".to_owned(), problem().into());
        components.responses.insert("Later".to_owned(), retryable_problem().into());
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

/// Adds the error responses that follow from the kind of operation.
fn add_problems(path: &str, operation: &mut Operation) {
    let is_authenticated = operation.security.is_none();
    let mut statuses = Vec::new();
    if is_authenticated {
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
    let entry = responses.responses.entry(status.to_owned());
    entry.or_insert_with(|| Ref::from_response_name(name).into());
}

/// Removes `null` from the type of an optional parameter: a URL cannot express it.
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
        .description("The request failed")
        .content("application/problem+json", content)
        .build()
}

fn retryable_problem() -> Response {
    let mut response = problem();
    let mut header = Header::new(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)));
    header.description = Some("Seconds to wait before the next attempt".to_owned());
    response.headers.insert("Retry-After".to_owned(), header.into());
    response
}

/// The serialized document, with the limits of this server.
#[derive(Clone)]
pub(super) struct Documents {
    with_keys: Arc<str>,
    without_keys: Arc<str>,
}

impl Documents {
    /// Generates the document for this configuration.
    pub(super) fn new(config: &Config) -> Self {
        let none: [&str; 0] = [];
        let keys =
            [SecurityRequirement::new("bearer", none), SecurityRequirement::new("header", none)];
        let text = |security: Vec<SecurityRequirement>| {
            let mut document = Api::openapi();
            document.security = Some(security);
            let mut document =
                serde_json::to_value(document).expect("the document consists of JSON values");
            restrict_schema::restrict(&mut document, &config.caps, &config.isolations);
            document.to_string().into()
        };
        // A server without keys accepts requests without a key.
        let open = std::iter::once(SecurityRequirement::default()).chain(keys.clone());
        Self { without_keys: text(open.collect()), with_keys: text(keys.to_vec()) }
    }
}

/// Serves the document.
pub(super) async fn document(
    State(state): State<AppState>,
    Extension(documents): Extension<Documents>,
) -> impl IntoResponse {
    let Documents { with_keys, without_keys } = documents;
    let text = if state.keys.is_empty() { without_keys } else { with_keys };
    ([(CONTENT_TYPE, "application/json")], text.to_string())
}
