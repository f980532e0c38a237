//! The address and API key of a server.

use std::fmt;
use std::str::FromStr;

/// The address of a server: `http://HOST[:PORT][/PATH]` or `https://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    scheme: Scheme,
    /// Host and port as given, for the `Host` header.
    authority: String,
    /// The host without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// The path before `/api`, without a trailing slash.
    prefix: String,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn parse(name: &str) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.name()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// An invalid or unsupported server address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidServerUrl {
    #[error("https is not supported by this build: build it with the feature 'https'")]
    Https,
    #[error("write it as http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:8080")]
    Form,
    #[error("remove the credentials from the address and use --api-key")]
    UserInfo,
}

impl ServerUrl {
    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The path of a resource on this server.
    pub(crate) fn path(&self, resource: &str) -> String {
        format!("{}{resource}", self.prefix)
    }
}

impl FromStr for ServerUrl {
    type Err = InvalidServerUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidServerUrl::Form)?;
        let scheme = Scheme::parse(scheme).ok_or(InvalidServerUrl::Form)?;
        if scheme == Scheme::Https && cfg!(not(feature = "https")) {
            return Err(InvalidServerUrl::Https);
        }
        // The text goes into a header and a request line: control characters could inject further lines.
        let plain = |letter: char| letter.is_ascii_graphic() && !"?#\\".contains(letter);
        if !rest.chars().all(plain) {
            return Err(InvalidServerUrl::Form);
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(InvalidServerUrl::UserInfo);
        }
        let (host, port) = split_authority(authority).ok_or(InvalidServerUrl::Form)?;
        let port = port.unwrap_or(scheme.default_port());
        Ok(Self {
            scheme,
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            prefix: path.trim_end_matches('/').to_owned(),
        })
    }
}

/// Splits off the port, if there is one.
fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map(|port| port.parse().ok().filter(|port| *port != 0).ok_or(())).transpose();
    (!host.is_empty()).then_some((host, port.ok()?))
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority, self.prefix)
    }
}

/// The API key of a server, hidden in debug output.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiKey(String);

/// An invalid API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an API key is printable ASCII without spaces")]
pub(crate) struct InvalidKey;

impl ApiKey {
    /// The key, if it is valid in a header. It is validated here and not by clap, whose errors quote the argument.
    pub(crate) fn secret(&self) -> Result<&str, InvalidKey> {
        let fits = !self.0.is_empty() && self.0.chars().all(|letter| letter.is_ascii_graphic());
        if fits { Ok(&self.0) } else { Err(InvalidKey) }
    }
}

impl From<String> for ApiKey {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, host, port, path) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, "/api"),
            ("HTTP://box", "box", 80, "/api"),
            ("http://[::1]:81/", "::1", 81, "/api"),
            ("http://[::1]", "::1", 80, "/api"),
            ("http://proxy:3000/a/b/", "proxy", 3000, "/a/b/api"),
        ] {
            let url: ServerUrl = text.parse().unwrap();
            assert_eq!((url.host_and_port(), url.path("/api")), ((host, port), path.to_owned()));
            assert_eq!(url.scheme(), Scheme::Http);
        }
    }

    #[cfg(feature = "https")]
    #[test]
    fn the_scheme_sets_the_default_port() {
        for (text, port) in [("https://box", 443), ("HTTPS://box:80/", 80), ("https://[::1]", 443)]
        {
            let url: ServerUrl = text.parse().unwrap();
            assert_eq!((url.scheme(), url.host_and_port().1), (Scheme::Https, port), "{text}");
        }
        assert_eq!("https://box/a/".parse::<ServerUrl>().unwrap().to_string(), "https://box/a");
    }

    #[cfg(not(feature = "https"))]
    #[test]
    fn a_build_without_https_refuses_it() {
        let refusal = "https://box".parse::<ServerUrl>().unwrap_err();
        assert_eq!(refusal, InvalidServerUrl::Https);
        assert!(refusal.to_string().contains("feature 'https'"));
    }

    #[test]
    fn invalid_addresses_are_refused() {
        let refusal = |text: &str| text.parse::<ServerUrl>().unwrap_err();
        assert_eq!(refusal("http://me:secret@box"), InvalidServerUrl::UserInfo);
        for text in [
            "",
            "box:8080",
            "ftp://box",
            "http://",
            "http://:80",
            "http://box:0",
            "http://box:port",
            "http://[::1",
            "http://[::1]80",
            "http://box/?a",
            "http://box/\r\nX: y",
            "http://box /",
        ] {
            assert_eq!(refusal(text), InvalidServerUrl::Form, "{text:?}");
        }
    }

    #[test]
    fn a_key_is_one_word_and_hidden() {
        let key = ApiKey::from("sk_123".to_owned());
        assert_eq!((key.secret(), format!("{key:?}").contains("123")), (Ok("sk_123"), false));
        for text in ["", "a b", "a\r\nX: y", "ü"] {
            assert_eq!(ApiKey::from(text.to_owned()).secret(), Err(InvalidKey), "{text:?}");
        }
    }
}
