use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use sandbox_api::{Code, Problem};

use super::error::ApiError;

/// The query of a URL. A handler takes the parameters that it knows, and rejects the rest with
/// [`reject_unknown`](Self::reject_unknown).
pub(super) struct Query {
    pairs: Vec<(String, String)>,
}

/// The execution id in a path.
pub(super) struct Id(pub(super) String);

/// How long a request waits for a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wait {
    /// As long as the server permits.
    Max,
    /// At most this long.
    AtMost(Duration),
}

impl Query {
    /// Takes a parameter that may occur once.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let mut values = self.take_all(name);
        if values.len() > 1 {
            return Err(ApiError::invalid(name, "given more than once"));
        }
        Ok(values.pop())
    }

    /// Takes a parameter that may occur any number of times.
    pub(super) fn take_all(&mut self, name: &str) -> Vec<String> {
        let taken = self.pairs.extract_if(.., |(key, _)| key == name);
        taken.map(|(_, value)| value).collect()
    }

    /// Takes and parses a parameter.
    pub(super) fn parse<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ApiError> {
        let value = self.take(name)?;
        value.map(|text| parse(&text)).transpose().map_err(|reason| ApiError::invalid(name, reason))
    }

    /// Rejects parameters that were not taken.
    pub(super) fn reject_unknown(self) -> Result<(), ApiError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::invalid(name, "unknown parameter")),
        }
    }

    /// Parses `wait`, and rejects all other parameters.
    pub(super) fn only_wait(mut self) -> Result<Option<Wait>, ApiError> {
        let wait = self.parse("wait", Wait::parse)?;
        self.reject_unknown()?;
        Ok(wait)
    }
}

impl Wait {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(Self::Max),
            "false" => Ok(Self::AtMost(Duration::ZERO)),
            seconds => {
                let seconds: Option<f64> = seconds.parse().ok();
                let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                let seconds = seconds
                    .ok_or_else(|| format!("'{text}' is not true, false or a number of seconds"))?;
                // The server's limit caps a number that overflows.
                let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                Ok(Self::AtMost(duration))
            }
        }
    }

    /// Parses `Prefer: respond-async` and `Prefer: wait=SECONDS`. Ignores preferences that are unknown or malformed, as
    /// RFC 7240 requires.
    pub(super) fn from_prefer_header(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let preferences: Vec<&str> =
            values.flat_map(|value| value.split([',', ';'])).map(str::trim).collect();
        let seconds = preferences.iter().find_map(|preference| {
            let (name, seconds) = preference.split_once('=')?;
            name.trim().eq_ignore_ascii_case("wait").then(|| seconds.trim().parse().ok())?
        });
        let is_async = preferences.iter().any(|word| word.eq_ignore_ascii_case("respond-async"));
        match (seconds, is_async) {
            (Some(seconds), _) => Some(Self::AtMost(Duration::from_secs(seconds))),
            (None, true) => Some(Self::AtMost(Duration::ZERO)),
            (None, false) => None,
        }
    }

    /// The time to wait, at most `max`.
    pub(super) fn timeout(self, max: Duration) -> Duration {
        match self {
            Self::Max => max,
            Self::AtMost(duration) => duration.min(max),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| ApiError::invalid("the query", error))?;
        Ok(Self { pairs: pairs.0 })
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let unknown = || Problem::new(Code::NotFound, "there is no execution with this id");
        // A path that cannot be decoded matches no execution.
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| unknown())?;
        let id = params.iter().find(|(name, _)| *name == "id").map(|(_, id)| Self(id.to_owned()));
        id.ok_or_else(|| unknown().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn wait_is_a_boolean_or_seconds() {
        let seconds = |seconds| Ok(Wait::AtMost(Duration::from_secs_f64(seconds)));
        assert_eq!(Wait::parse("true"), Ok(Wait::Max));
        assert_eq!(Wait::parse("false"), seconds(0.0));
        assert_eq!(Wait::parse("2.5"), seconds(2.5));
        assert_eq!(Wait::parse("1e300"), Ok(Wait::AtMost(Duration::MAX)));
        for text in ["", "yes", "-1", "nan", "inf", "5s"] {
            assert!(Wait::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_server_limit_caps_the_wait() {
        let max = Duration::from_mins(1);
        assert_eq!(Wait::Max.timeout(max), max);
        assert_eq!(Wait::AtMost(Duration::from_secs(1)).timeout(max), Duration::from_secs(1));
        assert_eq!(Wait::AtMost(Duration::MAX).timeout(max), max);
    }

    #[test]
    fn preferences_are_found_among_others() {
        let prefer = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(value));
            Wait::from_prefer_header(&headers)
        };
        assert_eq!(prefer("respond-async"), Some(Wait::AtMost(Duration::ZERO)));
        assert_eq!(prefer("handling=lenient, Respond-Async"), Some(Wait::AtMost(Duration::ZERO)));
        let ten = Some(Wait::AtMost(Duration::from_secs(10)));
        assert_eq!(prefer("respond-async, wait=10"), ten);
        assert_eq!(prefer("wait=soon"), None);
        assert_eq!(prefer("return=minimal"), None);
    }
}
