use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use uuid::Uuid;

/// Renders `/openapi.json` with nothing from anywhere else.
const PAGE: &str = include_str!("docs.html");

/// The API as a page for people. Only the one script that is ours runs on it.
pub(super) async fn page() -> impl IntoResponse {
    let nonce = Uuid::now_v7().simple().to_string();
    let policy = format!(
        "default-src 'none'; connect-src 'self'; style-src 'nonce-{nonce}'; \
         script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
    (headers, PAGE.replace("{nonce}", &nonce))
}
