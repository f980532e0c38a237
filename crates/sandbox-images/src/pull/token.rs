//! How registries give things to everybody who first asks somebody else for a token.

use reqwest::Url;
use serde::Deserialize;

/// They are some kilobytes long.
pub(super) const LONGEST: u64 = 1 << 18;

/// Where to get a token, and for what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) realm: String,
    service: Option<String>,
}

impl Challenge {
    /// Reads `Bearer realm="…",service="…",scope="…"`. Other kinds want a password.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        for (name, value) in parameters(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                // What we want is our own business.
                _ => {}
            }
        }
        Some(Self { realm: realm?, service })
    }

    pub(super) fn url(&self, mut place: Url, scope: &str) -> Url {
        let mut query = place.query_pairs_mut();
        if let Some(service) = &self.service {
            query.append_pair("service", service);
        }
        query.append_pair("scope", scope);
        drop(query);
        place
    }
}

/// Names and values, with or without quotation marks.
fn parameters(mut text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']);
        let (value, rest) = match rest.strip_prefix('"') {
            Some(rest) => rest.split_once('"').unwrap_or((rest, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        found.push((name, value.to_owned()));
        text = rest;
    }
    found
}

/// The token in an answer. Some call it so, some so.
pub(super) fn parse(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(bytes).ok()?;
    let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token)?;
    // It goes into a header.
    token.bytes().all(|byte| byte.is_ascii_graphic()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_where_to_get_a_token() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="a:b,c""#;
        let challenge = Challenge::parse(hub).unwrap();
        let url = challenge.url(Url::parse(&challenge.realm).unwrap(), "repository:x:pull");
        let wanted =
            "https://auth.docker.io/token?service=registry.docker.io&scope=repository%3Ax%3Apull";
        assert_eq!(url.as_str(), wanted);
        let bare = Challenge::parse("bearer realm=https://x.org/t").unwrap();
        assert_eq!(bare, Challenge { realm: "https://x.org/t".to_owned(), service: None });
    }

    #[test]
    fn what_wants_a_password_or_says_nothing_is_no_challenge() {
        for header in ["Basic realm=\"x\"", "Bearer", "Bearer service=\"x\"", "", "Bearer ="] {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
    }

    #[test]
    fn a_token_has_one_of_two_names_and_fits_a_header() {
        assert_eq!(parse(br#"{"token":"a"}"#).as_deref(), Some("a"));
        assert_eq!(parse(br#"{"token":"","access_token":"b"}"#).as_deref(), Some("b"));
        assert_eq!(parse(b"{\"token\":\"a\\r\\nX: y\"}"), None);
        assert_eq!(parse(b"[]"), None);
    }
}
