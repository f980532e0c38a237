//! Anonymous bearer tokens, which registries require even for public images.

use reqwest::Url;
use serde::Deserialize;

/// The maximum size of a token response; usual ones have a few kilobytes.
pub(super) const MAX_BYTES: u64 = 1 << 18;

/// A `WWW-Authenticate` challenge: where to get a token, and for which service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) realm: String,
    service: Option<String>,
}

impl Challenge {
    /// Parses `Bearer realm="…",service="…",scope="…"`. Other schemes require a password.
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
                // The scope is ignored: the client determines what it requests.
                _ => {}
            }
        }
        Some(Self { realm: realm?, service })
    }

    pub(super) fn url(&self, mut realm: Url, scope: &str) -> Url {
        let mut query = realm.query_pairs_mut();
        if let Some(service) = &self.service {
            query.append_pair("service", service);
        }
        query.append_pair("scope", scope);
        drop(query);
        realm
    }
}

/// Parses `name=value` pairs, with or without quotation marks.
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

/// Parses a token response. Token servers use one of two field names.
pub(super) fn parse(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct TokenResponse {
        token: Option<String>,
        access_token: Option<String>,
    }
    let response: TokenResponse = serde_json::from_slice(bytes).ok()?;
    let token = response.token.filter(|token| !token.is_empty()).or(response.access_token)?;
    // It is sent in a header.
    token.bytes().all(|byte| byte.is_ascii_graphic()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_contains_the_url_of_the_token_server() {
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="a:b,c""#;
        let challenge = Challenge::parse(hub).unwrap();
        let url = challenge.url(Url::parse(&challenge.realm).unwrap(), "repository:x:pull");
        let expected =
            "https://auth.docker.io/token?service=registry.docker.io&scope=repository%3Ax%3Apull";
        assert_eq!(url.as_str(), expected);
        let bare = Challenge::parse("bearer realm=https://x.org/t").unwrap();
        assert_eq!(bare, Challenge { realm: "https://x.org/t".to_owned(), service: None });
    }

    #[test]
    fn other_schemes_and_incomplete_challenges_are_rejected() {
        for header in ["Basic realm=\"x\"", "Bearer", "Bearer service=\"x\"", "", "Bearer ="] {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
    }

    #[test]
    fn a_token_has_one_of_two_names_and_is_valid_in_a_header() {
        assert_eq!(parse(br#"{"token":"a"}"#).as_deref(), Some("a"));
        assert_eq!(parse(br#"{"token":"","access_token":"b"}"#).as_deref(), Some("b"));
        assert_eq!(parse(b"{\"token\":\"a\\r\\nX: y\"}"), None);
        assert_eq!(parse(b"[]"), None);
    }
}
