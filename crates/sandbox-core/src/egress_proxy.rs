use std::fmt;
use std::str::FromStr;

/// An HTTP proxy on the sandbox's own loopback that reaches the listed hosts and nothing else. Only
/// internal stages (package installation) have one; a request cannot ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressProxy {
    /// The port on 127.0.0.1 inside the sandbox.
    pub port: u16,
    /// Hosts that the proxy connects to. An empty list allows none.
    pub places: Vec<HostPort>,
    /// Proxies that the host itself has to use.
    pub proxies: HostProxies,
}

impl EgressProxy {
    /// The URL of the proxy, as programs inside the sandbox use it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// A host and a port: `pypi.org:443`, `[::1]:8080`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    host: String,
    port: u16,
}

/// A text that is not a host with a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a host with a port, such as pypi.org:443", text.escape_debug())]
pub struct InvalidHostPort {
    text: String,
}

impl HostPort {
    /// A host by name or address, without brackets. Names are compared in lower case.
    pub fn new(host: &str, port: u16) -> Result<Self, InvalidHostPort> {
        let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = !host.is_empty()
            && host.len() <= 253
            && !host.starts_with(['-', '.'])
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if port == 0 || !(is_address || is_name) {
            return Err(InvalidHostPort { text: format!("{host}:{port}") });
        }
        // A trailing dot (the DNS root) is allowed and dropped.
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        Ok(Self { host, port })
    }

    /// The host, by name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for HostPort {
    type Err = InvalidHostPort;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || InvalidHostPort { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refuse());
        }
        let port = port.parse().map_err(|_| refuse())?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(refuse)?,
            // An IPv6 address without brackets is ambiguous.
            None if host.contains(':') => return Err(refuse()),
            None => host,
        };
        Self::new(host, port).map_err(|_| refuse())
    }
}

/// The proxies that the host itself uses to reach the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostProxies {
    /// For tunnels (`CONNECT`).
    pub tunnel: Option<HostProxy>,
    /// For plain HTTP requests.
    pub plain: Option<HostProxy>,
    /// Hosts that are reached directly, as in `NO_PROXY`: names, domains, names with a port, `*`.
    pub direct: Vec<String>,
}

/// One proxy of the host.
#[derive(Clone, PartialEq, Eq)]
pub struct HostProxy {
    /// The address of the proxy.
    pub place: HostPort,
    /// User and password, as in `user:password`.
    pub login: Option<String>,
}

impl HostProxies {
    /// Whether a host is reached without a proxy.
    pub fn is_direct(&self, place: &HostPort) -> bool {
        self.direct.iter().any(|entry| {
            let entry = entry.trim().to_ascii_lowercase();
            if entry == "*" {
                return true;
            }
            let name = match entry.rsplit_once(':') {
                Some((name, port)) if port.parse() == Ok(place.port) => name,
                _ => entry.as_str(),
            };
            let domain = name.trim_start_matches('*').trim_start_matches('.');
            let rest = place.host.strip_suffix(domain);
            !domain.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

impl fmt::Debug for HostProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The login is a secret.
        write!(f, "{}{}", if self.login.is_some() { "(login)@" } else { "" }, self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_a_port_is_parsed() {
        for (text, printed) in [
            ("PyPI.org:443", "pypi.org:443"),
            ("pypi.org.:443", "pypi.org:443"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "pypi.org",
            "pypi.org:",
            ":443",
            "pypi.org:0",
            "pypi.org:65536",
            "pypi.org:+80",
            "::1:80",
            "[::1:80",
            "a b:80",
            "a/b:80",
            "a@b:80",
            "a\r\nb:80",
            "-a:80",
            ".:80",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_direct_host_matches_by_name_domain_and_port() {
        let place: HostPort = "index.example.com:443".parse().unwrap();
        for (entry, direct) in [
            ("index.example.com", true),
            ("example.com", true),
            (".example.com", true),
            ("*.example.com", true),
            ("INDEX.example.com:443", true),
            ("*", true),
            ("index.example.com:80", false),
            ("ample.com", false),
            ("other.com", false),
            ("", false),
            (".", false),
        ] {
            let proxies = HostProxies { direct: vec![entry.to_owned()], ..HostProxies::default() };
            assert_eq!(proxies.is_direct(&place), direct, "{entry:?}");
        }
    }

    #[test]
    fn the_login_of_a_proxy_is_not_printed() {
        let place = HostPort::new("proxy", 3128).unwrap();
        let proxy = HostProxy { place, login: Some("user:secret".into()) };
        assert_eq!(format!("{proxy:?}"), "(login)@proxy:3128");
    }
}
