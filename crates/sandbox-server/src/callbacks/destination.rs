//! The destination of a callback.

use std::net::IpAddr;

use reqwest::Url;
use sandbox_store::NewCallback;

use super::address::{AddressPolicy, RefusedAddress};

const MAX_URL_LEN: usize = 2048;

/// Why a URL cannot be the destination of a callback.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidDestination {
    #[error("is longer than {MAX_URL_LEN} bytes")]
    TooLong,
    #[error("is not a URL, such as https://example.org/finished: {0}")]
    NotUrl(String),
    #[error("'{0}' is neither http nor https")]
    Scheme(String),
    #[error("has a user or password in it; verify the signature of callbacks instead")]
    UserInfo,
    #[error(transparent)]
    Address(#[from] RefusedAddress),
}

/// Parses a URL and checks what can be checked before sending. Host names are resolved when the callback is sent, because
/// they may resolve to something else by then.
pub(super) fn parse_url(text: &str, policy: &AddressPolicy) -> Result<Url, InvalidDestination> {
    if text.len() > MAX_URL_LEN {
        return Err(InvalidDestination::TooLong);
    }
    let mut url =
        Url::parse(text).map_err(|error| InvalidDestination::NotUrl(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(InvalidDestination::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidDestination::UserInfo);
    }
    if let Some(address) = literal_address(&url) {
        policy.check(address)?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// Parses the destination that a client named, to be stored with its execution.
pub(crate) fn parse_destination(
    text: &str,
    policy: &AddressPolicy,
) -> Result<NewCallback, InvalidDestination> {
    let url = parse_url(text, policy)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    Ok(NewCallback { url: url.into(), host })
}

/// The address, if the URL has one instead of a name. The parser has brought every spelling of an IPv4
/// address (`127.1`, `0x7f000001`) into the usual one.
fn literal_address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let unbracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    unbracketed.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<NewCallback, String> {
        parse_destination(text, &AddressPolicy::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_is_stored_as_it_will_be_used() {
        let callback = parsed("HTTPS://Example.ORG:8443/a b?c=d#part").unwrap();
        assert_eq!(callback.url, "https://example.org:8443/a%20b?c=d");
        assert_eq!(callback.host, "example.org");
        assert_eq!(parsed("http://8.8.8.8").unwrap().host, "8.8.8.8");
    }

    #[test]
    fn a_refusal_says_why() {
        let long = format!("https://example.org/{}", "x".repeat(2048));
        for (text, reason) in [
            ("", "is not a URL"),
            ("example.org/path", "is not a URL"),
            ("https://", "is not a URL"),
            ("http://[::1", "is not a URL"),
            ("ftp://example.org/", "'ftp' is neither http nor https"),
            ("file:///etc/passwd", "'file' is neither"),
            ("gopher://example.org/", "neither http nor https"),
            ("https://user@example.org/", "user or password"),
            ("https://:password@example.org/", "user or password"),
            (&long, "longer than 2048 bytes"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_parsed() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "\u{ff11}27.0.0.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
        ] {
            let error = parsed(&format!("http://{host}:80/")).unwrap_err();
            assert!(error.contains("'callback_allow'"), "{host}: {error}");
        }
    }
}
