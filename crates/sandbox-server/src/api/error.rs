use std::any::Any;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sandbox_api::{Code, Problem};

/// An error response: a problem, with `Retry-After` where it applies.
#[derive(Debug)]
pub(super) struct ApiError {
    problem: Problem,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// A problem with a status other than its code's, where HTTP distinguishes more kinds than the codes do.
    pub(super) fn with_status(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        Problem { status: status.as_u16(), ..Problem::new(code, detail) }.into()
    }

    /// An invalid value in a header, a path or a query.
    pub(super) fn invalid(name: &str, reason: impl Display) -> Self {
        Problem::new(Code::InvalidField, format!("{name}: {reason}")).into()
    }

    /// Too many requests; the client can send the next one after `wait`.
    pub(super) fn rate_limited(wait: Duration) -> Self {
        let seconds = whole_seconds(wait);
        let detail = format!("too many requests: retry in {seconds} s");
        let problem = Problem::new(Code::RateLimited, detail);
        Self { problem, retry_after: Some(wait) }
    }

    /// The problem, for a response that contains several.
    pub(super) fn into_problem(self) -> Problem {
        self.problem
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let retry_after = match problem.code {
            // Room is available as soon as one execution ends.
            Code::QuotaExceeded | Code::QueueFull => Some(Duration::from_secs(1)),
            Code::RateLimited | Code::Unavailable => Some(Duration::from_secs(5)),
            _ => None,
        };
        Self { problem, retry_after }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(body_of(&self.problem));
        let status = StatusCode::from_u16(self.problem.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.problem.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // `request_log` adds the request id, which is not known here.
        response.extensions_mut().insert(self.problem);
        response
    }
}

/// A problem as a response body.
pub(super) fn body_of(problem: &Problem) -> Body {
    Body::from(serde_json::to_vec(problem).expect("a problem is strings and numbers"))
}

/// The response after a panic. It reveals nothing of the panic; the log has the message.
#[expect(clippy::needless_pass_by_value, reason = "the signature that tower-http requires")]
pub(super) fn from_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(message = message.unwrap_or("no message"), "a handler panicked");
    let detail = "internal error; the server's log has the reason under this request id";
    ApiError::from(Problem::new(Code::Internal, detail)).into_response()
}

/// Whole seconds, rounded up, at least 1, so that a client that waits this long is not early.
fn whole_seconds(duration: Duration) -> u64 {
    let partial = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(partial).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2000, 2)];
        for (millis, seconds) in cases {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }

    #[test]
    fn an_overridden_status_is_in_the_response_and_in_its_body() {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let error = ApiError::with_status(status, Code::InvalidBody, "x");
        assert_eq!(error.problem.status, 415);
        assert_eq!(error.into_response().status(), status);
    }
}
