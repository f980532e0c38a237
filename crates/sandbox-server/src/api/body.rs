use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt as _;
use sandbox::format_duration;
use sandbox_api::{Code, Problem};
use serde::de::DeserializeOwned;

use super::refusal::Refusal;
use crate::state::AppState;

/// A body of JSON.
pub(super) struct Json<T>(pub(super) T);

/// Larger bodies are parsed on a thread that no other request waits for: ten megabytes take tens of milliseconds.
const MAX_PARSED_IN_PLACE: usize = 64 * 1024;

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Refusal> {
        refuse_other_types(request.headers())?;
        let config = &state.config;
        let bytes = read(request, config.max_body.as_usize(), config.body_timeout).await?;
        let parsed = if bytes.len() <= MAX_PARSED_IN_PLACE {
            parse(&bytes)
        } else {
            let parsing = tokio::task::spawn_blocking(move || parse(&bytes));
            parsing.await.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "parsing it failed")))
        };
        parsed.map(Self).map_err(Refusal::from)
    }
}

/// Other types are refused also because a page of another site could send them without asking.
fn refuse_other_types(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = match essence {
        "" => "send the header 'Content-Type: application/json'".to_owned(),
        other => format!("send 'Content-Type: application/json', not '{other}'"),
    };
    Err(Refusal::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidBody, detail))
}

/// A client that does not send its body `within` that time holds a connection for nothing.
async fn read(request: Request, most: usize, within: Duration) -> Result<Vec<u8>, Refusal> {
    let too_large = || {
        let detail = format!("the body is larger than {most} bytes, which is the most taken here");
        Refusal::from(Problem::new(Code::CodeTooLarge, detail))
    };
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    // What is announced as too large need not be sent.
    if length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > most) {
        return Err(too_large());
    }
    let mut chunks = request.into_body().into_data_stream();
    let all = async {
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| {
                Problem::new(Code::InvalidBody, format!("the body broke off: {error}"))
            })?;
            if bytes.len() + chunk.len() > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    tokio::time::timeout(within, all).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {}", format_duration(within));
        Err(Refusal::with_status(StatusCode::REQUEST_TIMEOUT, Code::InvalidBody, detail))
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let invalid = |detail: String| Problem::new(Code::InvalidBody, detail);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        invalid(format!("the body is not UTF-8 from byte {}", error.valid_up_to()))
    })?;
    serde_json::from_str(text).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use sandbox_api::ExecuteRequest;

    #[test]
    fn the_place_and_name_of_what_is_wrong_are_told() {
        let detail = |bytes: &[u8]| parse::<ExecuteRequest>(bytes).unwrap_err().detail;
        let unknown = detail(b"{\"language\": \"python\",\n \"colour\": 1}");
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        assert!(unknown.contains("line 2 column 9"), "{unknown}");
        assert!(detail(b"{").contains("line 1 column 1"));
        assert!(detail(b"").contains("EOF"));
        assert!(detail(b"{} x").contains("missing field `language`"));
        assert_eq!(detail(b"{\"language\": \"\xff\"}"), "the body is not UTF-8 from byte 14");
        let nested = detail("[".repeat(100_000).as_bytes());
        assert!(nested.contains("invalid type: sequence"), "{nested}");
        let deep = format!("{{\"env\": {}", "{\"a\":".repeat(100_000));
        assert!(detail(deep.as_bytes()).contains("line 1"), "a deep body is refused");
    }

    #[test]
    fn parameters_of_the_type_do_not_matter() {
        let check = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            refuse_other_types(&headers).is_ok()
        };
        assert!(check("application/json"));
        assert!(check("Application/JSON; charset=utf-8"));
        assert!(!check("text/plain"));
        assert!(!check("application/jsonx"));
        assert!(!check(""));
    }
}
