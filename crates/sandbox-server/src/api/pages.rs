//! The start page and the page that renders the OpenAPI document.

use axum::Json;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use uuid::Uuid;

use crate::state::AppState;

const INDEX: &str = include_str!("index.html");
/// Renders `/openapi.json`; loads nothing from other hosts.
const DOCS: &str = include_str!("docs.html");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Serves the start page: HTML to browsers, JSON to all other clients.
pub(super) async fn index(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let mut response = if accepts_html(&headers) {
        let host = host(&headers).or_else(|| Some(state.config.listen?.to_string()));
        let host = host.unwrap_or_else(|| "localhost".to_owned());
        html(&INDEX.replace("{version}", VERSION).replace("{host}", &host), "")
    } else {
        let paths = json!({
            "name": "sandboxd",
            "version": VERSION,
            "docs": "/docs",
            "openapi": "/openapi.json",
            "execute": "/api/v1/execute",
            "health": "/api/v1/health",
            "ready": "/api/v1/ready",
        });
        Json(paths).into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// Serves the API reference.
pub(super) async fn docs() -> Response {
    html(DOCS, "connect-src 'self'; script-src 'nonce-{nonce}'; ")
}

/// A page with a content security policy that permits the page's own style, and what `sources` adds. A nonce takes
/// the place of `{nonce}` in the page and in the policy.
fn html(page: &str, sources: &str) -> Response {
    let nonce = Uuid::now_v7().simple().to_string();
    let policy = format!(
        "default-src 'none'; {sources}style-src 'nonce-{{nonce}}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy.replace("{nonce}", &nonce)),
    ];
    (headers, page.replace("{nonce}", &nonce)).into_response()
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accept.split(',').any(|range| range.split(';').next().unwrap_or("").trim() == "text/html")
}

/// The host name that the client used, if it needs no escaping in HTML.
fn host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    (!host.is_empty() && host.chars().all(is_plain)).then(|| host.to_owned())
}
