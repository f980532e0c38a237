use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use sandbox_api::{Code, Problem};
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{Schema, SchemaType, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::{
    batch, environments, execute, executions, health, ready, runtimes, schema, stream, workspaces,
};

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
        // A server without keys takes requests without one.
        let none: [&str; 0] = [];
        document.security = Some(vec![
            SecurityRequirement::default(),
            SecurityRequirement::new("bearer", none),
            SecurityRequirement::new("header", none),
        ]);
        for item in document.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                let problem = Ref::from_response_name("Problem");
                operation.responses.responses.insert("default".to_owned(), problem.into());
                for parameter in operation.parameters.iter_mut().flatten() {
                    if let RefOr::T(Parameter { schema: Some(schema), .. }) = parameter {
                        remove_null(schema);
                    }
                }
            }
        }
    }
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
        .description("Why the request was not served; 429 and 503 come with `Retry-After`")
        .content("application/problem+json", content)
        .build()
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    Api::openapi().to_json().expect("the document is made of strings and numbers")
});

/// The document itself.
pub(super) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}
