use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt as _;
use sandbox::format_duration;
use sandbox_api::{Code, Problem};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use crate::state::AppState;

/// A request body, deserialized from JSON.
pub(super) struct JsonBody<T>(pub(super) T);

/// Larger bodies are parsed on a blocking thread: parsing 10 MiB takes tens of milliseconds, and would delay other
/// requests.
const MAX_PARSED_INLINE: usize = 64 * 1024;

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let config = &state.config;
        let bytes = read(request, config.max_body.as_usize(), config.body_timeout).await?;
        let parsed = if bytes.len() <= MAX_PARSED_INLINE {
            parse(&bytes)
        } else {
            let parsing = tokio::task::spawn_blocking(move || parse(&bytes));
            parsing.await.unwrap_or_else(|_| {
                Err(Problem::new(Code::Internal, "internal error while parsing the body"))
            })
        };
        parsed.map(Self).map_err(ApiError::from)
    }
}

/// Refuses other content types. This also stops cross-site requests: a web page can send `text/plain` to another
/// origin without a CORS preflight, but not JSON.
fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = match essence {
        "" => "send the header 'Content-Type: application/json'".to_owned(),
        other => format!("send 'Content-Type: application/json', not '{other}'"),
    };
    Err(ApiError::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidBody, detail))
}

/// Reads at most `max` bytes, within `timeout`.
async fn read(request: Request, max: usize, timeout: Duration) -> Result<Vec<u8>, ApiError> {
    let too_large = || {
        let detail = format!("the body exceeds this server's maximum of {max} bytes");
        ApiError::from(Problem::new(Code::CodeTooLarge, detail))
    };
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    // Refuse by the announced length, before the body is sent.
    if length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let mut chunks = request.into_body().into_data_stream();
    let all = async {
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| {
                Problem::new(Code::InvalidBody, format!("failed to read the body: {error}"))
            })?;
            if bytes.len() + chunk.len() > max {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    tokio::time::timeout(timeout, all).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {}", format_duration(timeout));
        Err(ApiError::with_status(StatusCode::REQUEST_TIMEOUT, Code::InvalidBody, detail))
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let invalid = |detail: String| Problem::new(Code::InvalidBody, detail);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        invalid(format!("the body is not valid UTF-8 at byte {}", error.valid_up_to()))
    })?;
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use sandbox_api::ExecuteRequest;

    #[test]
    fn errors_name_the_field_and_the_position() {
        let detail = |bytes: &[u8]| parse::<ExecuteRequest>(bytes).unwrap_err().detail;
        let unknown = detail(b"{\"language\": \"python\",\n \"colour\": 1}");
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        assert!(unknown.contains("line 2 column 9"), "{unknown}");
        assert!(detail(b"{").contains("line 1 column 1"));
        assert!(detail(b"").contains("EOF"));
        assert!(detail(b"{} x").contains("missing field `language`"));
        assert_eq!(detail(b"{\"language\": \"\xff\"}"), "the body is not valid UTF-8 at byte 14");
        let nested = detail("[".repeat(100_000).as_bytes());
        assert!(nested.contains("invalid type: sequence"), "{nested}");
        let deep = format!("{{\"env\": {}", "{\"a\":".repeat(100_000));
        assert!(detail(deep.as_bytes()).contains("line 1"), "a deep body is refused");
    }

    #[test]
    fn parameters_of_the_content_type_are_ignored() {
        let check = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            require_json(&headers).is_ok()
        };
        assert!(check("application/json"));
        assert!(check("Application/JSON; charset=utf-8"));
        assert!(!check("text/plain"));
        assert!(!check("application/jsonx"));
        assert!(!check(""));
    }
}
