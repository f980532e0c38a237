use std::any::Any;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sandbox_api::{Code, Problem};

/// An answer that says why a request was not served.
#[derive(Debug)]
pub(super) struct Refusal {
    problem: Problem,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// A problem with a status of its own, for kinds that HTTP tells apart and we do not.
    pub(super) fn with_status(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        Problem { status: status.as_u16(), ..Problem::new(code, detail) }.into()
    }

    /// A value that a header, a path or a query cannot have.
    pub(super) fn invalid(name: &str, reason: impl Display) -> Self {
        Problem::new(Code::InvalidField, format!("{name}: {reason}")).into()
    }

    /// Too many requests; there is room for the next one after so long.
    pub(super) fn rate_limited(wait: Duration) -> Self {
        let seconds = in_seconds(wait);
        let detail = format!("too many requests: the next one is taken in {seconds} s");
        let problem = Problem::new(Code::RateLimited, detail);
        Self { problem, retry_after: Some(wait) }
    }

    /// The problem, for an answer that holds several.
    pub(super) fn into_problem(self) -> Problem {
        self.problem
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let retry_after = match problem.code {
            // A place is free as soon as one execution ends.
            Code::QuotaExceeded | Code::QueueFull => Some(Duration::from_secs(1)),
            Code::RateLimited | Code::Unavailable => Some(Duration::from_secs(5)),
            _ => None,
        };
        Self { problem, retry_after }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Response::new(body_of(&self.problem));
        let status = StatusCode::from_u16(self.problem.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(in_seconds(wait)));
        }
        if self.problem.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Whoever finishes the answer adds the request's id, which is not known here.
        response.extensions_mut().insert(self.problem);
        response
    }
}

/// A problem as the body of an answer.
pub(super) fn body_of(problem: &Problem) -> Body {
    Body::from(serde_json::to_vec(problem).expect("a problem is strings and numbers"))
}

/// What a client hears of a panic: nothing of its inside, which the log has.
#[expect(clippy::needless_pass_by_value, reason = "this is how the panic is handed over")]
pub(super) fn of_panic(panic: Box<dyn Any + Send>) -> Response {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(message = message.unwrap_or("no message"), "a handler panicked");
    let detail = "the server failed; its log has this request's id and the reason";
    Refusal::from(Problem::new(Code::Internal, detail)).into_response()
}

/// Whole seconds, rounded up, and at least one: a client that waits so long does not come too early.
fn in_seconds(duration: Duration) -> u64 {
    let begun = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_never_too_few() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2000, 2)];
        for (millis, seconds) in cases {
            assert_eq!(in_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }

    #[test]
    fn a_status_of_its_own_is_in_the_answer_and_in_its_body() {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let refusal = Refusal::with_status(status, Code::InvalidBody, "x");
        assert_eq!(refusal.problem.status, 415);
        assert_eq!(refusal.into_response().status(), status);
    }
}
