use std::borrow::Cow;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;

/// What a request asks for, in words of ours. Clients may write any path and any method, and neither
/// metrics nor traces should have a name for each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// One of those that HTTP itself has, or `other`.
    pub(super) method: &'static str,
    /// The path as the router has it, with names for what differs; `unknown` for all the rest.
    pub(super) route: Cow<'static, str>,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let matched = request.extensions().get::<MatchedPath>();
        let route =
            matched.map_or(Cow::Borrowed("unknown"), |path| path.as_str().to_owned().into());
        Self { method: method(request.method()), route }
    }
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
