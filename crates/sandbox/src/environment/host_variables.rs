//! Environment variables of this process that package managers read, and the proxies that they name.

use std::collections::BTreeMap;

use sandbox_core::{HostPort, HostProxies, HostProxy};

/// The variables of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostVariables(BTreeMap<String, String>);

impl HostVariables {
    /// The variables of this process. Values that are not UTF-8 are ignored: package managers cannot use them.
    pub(crate) fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(std::env::vars_os().filter_map(text).collect())
    }

    /// The value of a variable, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The proxies in the usual variables.
    pub(crate) fn proxies(&self) -> HostProxies {
        // Lower case takes precedence, as in curl.
        let either = |name: &str| self.get(&name.to_lowercase()).or_else(|| self.get(name));
        let proxy = |name: &str| either(name).or_else(|| either("ALL_PROXY")).and_then(proxy);
        HostProxies {
            tunnel: proxy("HTTPS_PROXY"),
            plain: proxy("HTTP_PROXY"),
            direct: either("NO_PROXY").map(list).unwrap_or_default(),
        }
    }
}

fn list(text: &str) -> Vec<String> {
    text.split([',', ' ']).filter(|entry| !entry.is_empty()).map(ToOwned::to_owned).collect()
}

/// Parses the address of an HTTP proxy. Other kinds of proxies are not supported.
pub(crate) fn proxy(text: &str) -> Option<HostProxy> {
    let rest = match text.split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return None,
        None => text,
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(unescape(login)), host),
        None => (None, authority),
    };
    let place = host.parse().or_else(|_| format!("{host}:80").parse()).ok()?;
    Some(HostProxy { place, login })
}

/// The host and port of a URL.
pub(crate) fn host_port_of(url: &str) -> Option<HostPort> {
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.parse().or_else(|_| format!("{host}:{port}").parse()).ok()
}

/// Decodes percent-encoding.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = escaped.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn variables(pairs: &[(&str, &str)]) -> HostVariables {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        HostVariables(pairs.iter().map(owned).collect())
    }

    #[test]
    fn the_host_and_port_of_a_url_are_found() {
        for (url, place) in [
            ("https://pypi.org/simple", Some("pypi.org:443")),
            ("http://index:3141/root", Some("index:3141")),
            ("https://user:p%40ss@Index.example.com/simple/", Some("index.example.com:443")),
            ("http://[::1]:80", Some("[::1]:80")),
            ("http://[::1]/x", Some("[::1]:80")),
            ("file:///srv/wheels", None),
            ("/srv/wheels", None),
            ("https://", None),
        ] {
            let found = host_port_of(url).map(|place| place.to_string());
            assert_eq!(found.as_deref(), place, "{url}");
        }
    }

    #[test]
    fn proxies_come_from_the_usual_variables() {
        let proxies = variables(&[
            ("HTTPS_PROXY", "http://unused:1"),
            ("https_proxy", "http://ada:se%63ret@proxy:3128/"),
            ("ALL_PROXY", "other"),
            ("NO_PROXY", "localhost, .example.com"),
        ])
        .proxies();
        let tunnel = proxies.tunnel.unwrap();
        assert_eq!(tunnel.place.to_string(), "proxy:3128");
        assert_eq!(tunnel.login.as_deref(), Some("ada:secret"));
        assert_eq!(proxies.plain.unwrap().place.to_string(), "other:80");
        assert_eq!(proxies.direct, ["localhost", ".example.com"]);
    }

    #[test]
    fn without_variables_there_is_no_proxy() {
        let none = HostProxies::default();
        assert_eq!(variables(&[]).proxies(), none);
        assert_eq!(variables(&[("https_proxy", "")]).proxies(), none);
        assert_eq!(variables(&[("https_proxy", "socks5://proxy:1080")]).proxies(), none);
    }
}
