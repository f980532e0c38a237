use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use uuid::Uuid;

use crate::state::AppState;

const PAGE: &str = include_str!("home.html");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What this is and where to go on: a page for browsers, JSON for all others.
pub(super) async fn home(State(state): State<AppState>, headers: HeaderMap) -> Response {
    let mut response = if wants_page(&headers) {
        page(&host(&headers).unwrap_or_else(|| state.config.listen.to_string()))
    } else {
        let places = json!({
            "name": "sandboxd",
            "version": VERSION,
            "docs": "/docs",
            "openapi": "/openapi.json",
            "execute": "/api/v1/execute",
            "health": "/api/v1/health",
            "ready": "/api/v1/ready",
        });
        Answer(places).into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

fn page(host: &str) -> Response {
    let nonce = Uuid::now_v7().simple().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
    let page = PAGE.replace("{nonce}", &nonce).replace("{version}", VERSION);
    (headers, page.replace("{host}", host)).into_response()
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    accept.split(',').any(|range| range.split(';').next().unwrap_or("").trim() == "text/html")
}

/// The name by which the client reached us, if it is plain enough to be put into a page.
fn host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    (!host.is_empty() && host.chars().all(is_plain)).then(|| host.to_owned())
}
