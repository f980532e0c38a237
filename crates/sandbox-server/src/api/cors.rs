use std::time::Duration;

use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use super::request_log::REQUEST_ID;
use crate::config::Config;

/// The CORS layer. Without configured origins there is none, and pages of other origins cannot read responses.
pub(super) fn layer(config: &Config) -> Option<CorsLayer> {
    let origins = &config.cors_origins;
    if origins.is_empty() {
        return None;
    }
    let allowed = if is_any(origins) {
        AllowOrigin::from(Any)
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    let sent = [
        ACCEPT,
        AUTHORIZATION,
        CONTENT_TYPE,
        REQUEST_ID,
        HeaderName::from_static("idempotency-key"),
        HeaderName::from_static("last-event-id"),
        HeaderName::from_static("prefer"),
        HeaderName::from_static("x-api-key"),
    ];
    let read = [
        LOCATION,
        RETRY_AFTER,
        REQUEST_ID,
        HeaderName::from_static("ratelimit-limit"),
        HeaderName::from_static("ratelimit-remaining"),
        HeaderName::from_static("ratelimit-reset"),
    ];
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(sent)
        .expose_headers(read)
        .max_age(Duration::from_hours(1));
    Some(layer)
}

/// Whether a page of this origin may open a WebSocket. Browsers send no preflight for WebSockets, so the server has to
/// check the `Origin` header.
pub(super) fn allows(origins: &[String], origin: &str, host: Option<&str>) -> bool {
    let own = origin.split_once("://").map(|(_, authority)| authority);
    let is_own = own.is_some() && own == host;
    is_own || is_any(origins) || origins.iter().any(|allowed| allowed == origin)
}

fn is_any(origins: &[String]) -> bool {
    origins.iter().any(|origin| origin == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_configured_origins_are_allowed() {
        let configured = ["https://ide.example".to_owned()];
        let host = Some("127.0.0.1:8080");
        assert!(allows(&configured, "https://ide.example", host));
        assert!(allows(&[], "http://127.0.0.1:8080", host));
        assert!(allows(&["*".to_owned()], "https://evil.example", host));
        for origin in ["https://evil.example", "http://127.0.0.1:9090", "null", ""] {
            assert!(!allows(&configured, origin, host), "{origin}");
            assert!(!allows(&[], origin, None), "{origin}");
        }
    }
}
