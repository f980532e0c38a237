use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use sandbox_api::{Code, Problem};

use super::refusal::Refusal;

/// The part of a URL after the question mark. A handler takes what it knows; what is left is refused.
pub(super) struct Query {
    pairs: Vec<(String, String)>,
}

/// The id in a path.
pub(super) struct Id(pub(super) String);

/// How long a client wants to wait for a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wait {
    /// As long as the server waits at most.
    Long,
    /// Not longer than this.
    AtMost(Duration),
}

impl Query {
    /// The value of a parameter that may be given once.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let mut values = self.take_all(name);
        if values.len() > 1 {
            return Err(Refusal::invalid(name, "it is given more than once"));
        }
        Ok(values.pop())
    }

    /// The values of a parameter that may be given many times.
    pub(super) fn take_all(&mut self, name: &str) -> Vec<String> {
        let taken = self.pairs.extract_if(.., |(given, _)| given == name);
        taken.map(|(_, value)| value).collect()
    }

    /// A parameter that is read in some way, or refused with the reason why it cannot be.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let value = self.take(name)?;
        value.map(|text| read(&text)).transpose().map_err(|reason| Refusal::invalid(name, reason))
    }

    /// Refuses what nobody took.
    pub(super) fn end(self) -> Result<(), Refusal> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(Refusal::invalid(name, "there is no such parameter here")),
        }
    }

    /// `wait`, the only parameter of a call.
    pub(super) fn only_wait(mut self) -> Result<Option<Wait>, Refusal> {
        let wait = self.read("wait", Wait::parse)?;
        self.end()?;
        Ok(wait)
    }
}

impl Wait {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(Self::Long),
            "false" => Ok(Self::AtMost(Duration::ZERO)),
            seconds => {
                let seconds: Option<f64> = seconds.parse().ok();
                let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                let seconds = seconds
                    .ok_or_else(|| format!("'{text}' is not true, false or a number of seconds"))?;
                // What is too long for a duration is too long for the server all the same.
                let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                Ok(Self::AtMost(duration))
            }
        }
    }

    /// What RFC 7240 has for it: `Prefer: respond-async` and `Prefer: wait=SECONDS`. Preferences that
    /// are unknown or cannot be read are no errors there.
    pub(super) fn preferred(headers: &HeaderMap) -> Option<Self> {
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

    /// The time to wait, of a server that waits so long at most.
    pub(super) fn patience(self, most: Duration) -> Duration {
        match self {
            Self::Long => most,
            Self::AtMost(duration) => duration.min(most),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| Refusal::invalid("the query", error))?;
        Ok(Self { pairs: pairs.0 })
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let unknown = || Problem::new(Code::NotFound, "there is no execution with this id");
        // A path that cannot be decoded names nothing either.
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
    fn a_wait_is_a_word_or_seconds() {
        let seconds = |seconds| Ok(Wait::AtMost(Duration::from_secs_f64(seconds)));
        assert_eq!(Wait::parse("true"), Ok(Wait::Long));
        assert_eq!(Wait::parse("false"), seconds(0.0));
        assert_eq!(Wait::parse("2.5"), seconds(2.5));
        assert_eq!(Wait::parse("1e300"), Ok(Wait::AtMost(Duration::MAX)));
        for text in ["", "yes", "-1", "nan", "inf", "5s"] {
            assert!(Wait::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nobody_waits_longer_than_the_server_does() {
        let most = Duration::from_mins(1);
        assert_eq!(Wait::Long.patience(most), most);
        assert_eq!(Wait::AtMost(Duration::from_secs(1)).patience(most), Duration::from_secs(1));
        assert_eq!(Wait::AtMost(Duration::MAX).patience(most), most);
    }

    #[test]
    fn preferences_are_found_among_others() {
        let prefer = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", HeaderValue::from_static(value));
            Wait::preferred(&headers)
        };
        assert_eq!(prefer("respond-async"), Some(Wait::AtMost(Duration::ZERO)));
        assert_eq!(prefer("handling=lenient, Respond-Async"), Some(Wait::AtMost(Duration::ZERO)));
        let ten = Some(Wait::AtMost(Duration::from_secs(10)));
        assert_eq!(prefer("respond-async, wait=10"), ten);
        assert_eq!(prefer("wait=soon"), None);
        assert_eq!(prefer("return=minimal"), None);
    }
}
