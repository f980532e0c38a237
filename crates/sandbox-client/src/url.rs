//! The address and API key of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reqwest::Url;
use reqwest::header::HeaderValue;

/// The address of a server: `http://HOST[:PORT][/PATH]`, `https://…`, or `unix:/PATH` for its socket on this host. The
/// path of the first two precedes `/api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    url: Url,
    /// The Unix socket to connect to, whatever the host in `url`.
    socket: Option<PathBuf>,
}

/// The URL of requests over a Unix socket: HTTP needs a host.
const SOCKET_URL: &str = "http://localhost";

/// An invalid or unsupported server address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServerUrl {
    /// `https://` needs the feature `https`.
    #[error("https is not supported by this build: build it with the feature 'https'")]
    Https,
    /// Not an address of a server.
    #[error(
        "write it as http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:8080, or as unix:/PATH"
    )]
    Form,
    /// It contains a user name or a password.
    #[error("remove the credentials from the address and use --api-key")]
    UserInfo,
}

impl ServerUrl {
    #[cfg(feature = "https")]
    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether it is a Unix socket: the server is on this host.
    pub fn is_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// The Unix socket to connect to.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The URL of this path of the API.
    pub(crate) fn join(&self, resource: &str) -> String {
        format!("{}{resource}", self.url.as_str().trim_end_matches('/'))
    }

    /// The address of a socket, after `unix:`. Both `unix:/PATH` and `unix:///PATH` are common.
    fn of_socket(text: &str) -> Result<Self, InvalidServerUrl> {
        let path = text.strip_prefix("//").unwrap_or(text);
        if !path.starts_with('/') || path.contains('\0') {
            return Err(InvalidServerUrl::Form);
        }
        let url = Url::parse(SOCKET_URL).expect("it is a URL");
        Ok(Self { url, socket: Some(path.into()) })
    }
}

impl FromStr for ServerUrl {
    type Err = InvalidServerUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::of_socket(path);
        }
        // The parser of URLs corrects these: it removes line breaks and adds slashes.
        let (_, rest) = text.split_once("://").ok_or(InvalidServerUrl::Form)?;
        let is_plain = |letter: char| letter.is_ascii_graphic() && !"?#\\".contains(letter);
        if rest.starts_with('/') || !rest.chars().all(is_plain) {
            return Err(InvalidServerUrl::Form);
        }
        let url = Url::parse(text).map_err(|_| InvalidServerUrl::Form)?;
        match url.scheme() {
            "http" => {}
            "https" if cfg!(feature = "https") => {}
            "https" => return Err(InvalidServerUrl::Https),
            _ => return Err(InvalidServerUrl::Form),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidServerUrl::UserInfo);
        }
        if url.port() == Some(0) {
            return Err(InvalidServerUrl::Form);
        }
        Ok(Self { url, socket: None })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => f.write_str(&self.join("")),
        }
    }
}

/// The API key of a server, hidden in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// An invalid API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an API key is printable ASCII without spaces")]
pub struct InvalidKey;

impl ApiKey {
    /// The header value that authenticates with this key. The key is validated here and not when it is parsed, because
    /// errors of command-line parsers quote the argument.
    pub(crate) fn bearer(&self) -> Result<HeaderValue, InvalidKey> {
        if self.0.is_empty() || !self.0.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(InvalidKey);
        }
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", self.0)).map_err(|_| InvalidKey)?;
        value.set_sensitive(true);
        Ok(value)
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
        for (text, url) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTP://box", "http://box"),
            ("http://[::1]:81/", "http://[::1]:81"),
            ("http://proxy:3000/a/b/", "http://proxy:3000/a/b"),
            ("unix:/run/a b.sock", "unix:/run/a b.sock"),
            ("unix:///run/s", "unix:/run/s"),
            #[cfg(feature = "https")]
            ("https://box:444/a", "https://box:444/a"),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().to_string(), url);
        }
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
            "http:///box",
            "http:box",
            "http://:80",
            "http://box:0",
            "http://box:port",
            "http://[::1",
            "http://[::1]80",
            "http://box/?a",
            "http://box/\r\nX: y",
            "http://box /",
            "unix:",
            "unix:run/s",
            "unix://run/s",
            "unix:/run/\0",
        ] {
            assert_eq!(refusal(text), InvalidServerUrl::Form, "{text:?}");
        }
    }

    #[test]
    fn a_key_is_one_word_and_hidden() {
        let key = ApiKey::from("sk_123".to_owned());
        let value = key.bearer().unwrap();
        assert_eq!(value.as_bytes(), b"Bearer sk_123");
        assert!(!format!("{key:?}{value:?}").contains("123"));
        for text in ["", "a b", "a\r\nX: y", "ü"] {
            assert_eq!(ApiKey::from(text.to_owned()).bearer(), Err(InvalidKey), "{text:?}");
        }
    }
}
