//! The allow-list: names, domains and address ranges that a program may connect to, each with
//! ports.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::AddressRange;

/// The ports of a rule that names none: those of the web.
const DEFAULT_PORTS: [RangeInclusive<u16>; 2] = [80..=80, 443..=443];
/// Each port of a name takes a listener.
const MAX_PORTS: u32 = 64;
/// More rules than an operator could review.
const MAX_RULES: usize = 256;

/// A destination that a program may connect to: `example.org`, `example.org:8080`,
/// `*.example.org:443`, `10.1.0.0/16:5432`, `127.0.0.1:8000-8010`, `[2001:db8::1]:80`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllowRule {
    target: AllowTarget,
    ports: Vec<RangeInclusive<u16>>,
}

/// The hosts that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AllowTarget {
    /// A host by name, in lower case.
    Name(String),
    /// Every name below this one, but not this one.
    Below(String),
    /// A range of addresses.
    Range(AddressRange),
}

/// An invalid rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' cannot be allowed: {reason}", text.escape_debug())]
pub struct InvalidAllowRule {
    text: String,
    reason: &'static str,
}

/// The destinations that a program may connect to, and limits on how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist {
    rules: Vec<AllowRule>,
    dns: bool,
    limits: NetworkLimits,
}

/// Limits on connections and traffic of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Connections in the whole execution.
    pub connections: u64,
    /// Connections at the same time.
    pub at_once: usize,
    /// Bytes received over all connections.
    pub bytes_in: u64,
    /// Bytes sent over all connections.
    pub bytes_out: u64,
    /// DNS queries.
    pub questions: u64,
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            at_once: 2_000,
            bytes_in: 4 << 30,
            bytes_out: 1 << 30,
            questions: 2_000,
        }
    }
}

impl Allowlist {
    /// Creates an allow-list. With `dns`, any name is resolved; connections are restricted to the
    /// rules in both cases.
    pub fn new(rules: Vec<AllowRule>, dns: bool) -> Result<Self, InvalidAllowRule> {
        if rules.len() > MAX_RULES {
            let reason = "there are more than 256 rules before it";
            return Err(InvalidAllowRule { text: rules[MAX_RULES].to_string(), reason });
        }
        Ok(Self { rules, dns, limits: NetworkLimits::default() })
    }

    /// The same list with other limits.
    #[must_use]
    pub fn with_limits(self, limits: NetworkLimits) -> Self {
        Self { limits, ..self }
    }

    /// The rules.
    pub fn rules(&self) -> &[AllowRule] {
        &self.rules
    }

    /// The limits.
    pub fn limits(&self) -> &NetworkLimits {
        &self.limits
    }

    /// Whether names are resolved that no rule allows.
    pub fn looks_up_any_name(&self) -> bool {
        self.dns
    }

    /// Whether a name may be resolved.
    pub fn answers(&self, name: &str) -> bool {
        self.dns || self.rules.iter().any(|rule| rule.is_about(name))
    }

    /// The ports that may be connected to at a name.
    pub fn ports_of(&self, name: &str) -> Vec<u16> {
        let mut ports: Vec<u16> = self
            .rules
            .iter()
            .filter(|rule| rule.is_about(name))
            .flat_map(AllowRule::each_port)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Whether a rule names this address, or a range that contains it, with this port.
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        self.rules.iter().any(|rule| {
            matches!(&rule.target, AllowTarget::Range(range) if range.contains(address))
                && rule.ports.iter().any(|ports| ports.contains(&port))
        })
    }

    /// Whether a rule names this address, or a range that contains it, with any port.
    pub fn covers(&self, address: IpAddr) -> bool {
        let mut ranges = self.rules.iter().filter_map(|rule| match &rule.target {
            AllowTarget::Range(range) => Some(range),
            _ => None,
        });
        ranges.any(|range| range.contains(address))
    }
}

impl AllowRule {
    /// The hosts that it allows.
    pub fn target(&self) -> &AllowTarget {
        &self.target
    }

    /// Each port that it allows.
    pub fn each_port(&self) -> impl Iterator<Item = u16> + '_ {
        self.ports.iter().flat_map(Clone::clone)
    }

    /// Whether it allows this name, which is in lower case without a trailing dot.
    fn is_about(&self, name: &str) -> bool {
        match &self.target {
            AllowTarget::Name(own) => own == name,
            AllowTarget::Below(domain) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            AllowTarget::Range(_) => false,
        }
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            AllowTarget::Name(name) => f.write_str(name)?,
            AllowTarget::Below(domain) => write!(f, "*.{domain}")?,
            AllowTarget::Range(range) if range.first().is_ipv6() => write!(f, "[{range}]")?,
            AllowTarget::Range(range) => write!(f, "{range}")?,
        }
        match &self.ports[..] {
            [ports] if ports.start() == ports.end() => write!(f, ":{}", ports.start()),
            [ports] => write!(f, ":{}-{}", ports.start(), ports.end()),
            _ => Ok(()),
        }
    }
}

impl FromStr for AllowRule {
    type Err = InvalidAllowRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| InvalidAllowRule { text: text.to_owned(), reason };
        let (host, ports) = cut(text).map_err(refuse)?;
        let target = target(host).map_err(refuse)?;
        let ports = ports.map(self::ports).transpose().map_err(refuse)?;
        let ports = ports.map_or_else(|| DEFAULT_PORTS.to_vec(), |ports| vec![ports]);
        Ok(Self { target, ports })
    }
}

/// Splits a rule into host and ports. IPv6 addresses need brackets if ports follow.
fn cut(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("there is no ']'")?;
        return match rest.strip_prefix(':') {
            Some(ports) => Ok((host, Some(ports))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("behind ']' there can only be ':' and a port"),
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((text, None)),
        Some((host, ports)) => Ok((host, Some(ports))),
        None => Ok((text, None)),
    }
}

fn target(host: &str) -> Result<AllowTarget, &'static str> {
    if let Ok(range) = host.parse::<AddressRange>() {
        return Ok(AllowTarget::Range(range));
    }
    if host.contains('/') {
        return Err("it is not a range of addresses, such as 10.0.0.0/8");
    }
    let (domain, is_below) = match host.strip_prefix("*.") {
        Some(domain) => (domain, true),
        None => (host, false),
    };
    let name = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
    if !is_name(&name) {
        return Err("it is not a host name, *.domain, an address or a range of addresses");
    }
    Ok(if is_below { AllowTarget::Below(name) } else { AllowTarget::Name(name) })
}

/// Whether a text is a valid host name: labels of letters, digits, hyphens and underscores. A
/// malformed IPv4 address is not a name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let last_is_number = text
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= 253 && text.split('.').all(is_label) && !last_is_number
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let port = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let port = text.parse().ok().filter(|port| is_number && *port != 0);
        port.ok_or("a port is a number from 1 to 65535")
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    if last < first {
        return Err("the last port is before the first");
    }
    if u32::from(last - first) >= MAX_PORTS {
        return Err("a rule can have 64 ports");
    }
    Ok(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> AllowRule {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn list(rules: &[&str]) -> Allowlist {
        Allowlist::new(rules.iter().map(|text| rule(text)).collect(), false).unwrap()
    }

    #[test]
    fn rules_are_read_and_printed() {
        for (text, printed) in [
            ("Example.org", "example.org"),
            ("example.org.:443", "example.org:443"),
            ("*.Example.org:8000-8010", "*.example.org:8000-8010"),
            ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("::1", "[::1]"),
            ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
            ("localhost:1", "localhost:1"),
        ] {
            assert_eq!(rule(text).to_string(), printed);
            assert_eq!(rule(printed), rule(text));
        }
        assert_eq!(rule("example.org").each_port().collect::<Vec<_>>(), [80, 443]);
    }

    #[test]
    fn an_invalid_rule_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "host name"),
            ("*", "host name"),
            ("*.", "host name"),
            ("a.*.org", "host name"),
            ("exa mple.org", "host name"),
            ("-a.org", "host name"),
            ("http://example.org", "a port is"),
            ("example.org:", "a port is"),
            ("example.org:0", "a port is"),
            ("example.org:+80", "a port is"),
            ("example.org:65536", "a port is"),
            ("example.org:9-8", "before the first"),
            ("example.org:1-65", "64 ports"),
            ("10.0.0.0/33:80", "range of addresses"),
            ("10.0.0.1/8:80", "range of addresses"),
            ("1.2.3", "host name"),
            ("1.2.3.4.5:80", "host name"),
            ("[::1:80", "']'"),
            ("[::1]80", "':'"),
        ] {
            let error = text.parse::<AllowRule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_documentation_tells_the_limits() {
        let documentation = include_str!("../../../../docs/network.md");
        let NetworkLimits { connections, at_once, bytes_in, bytes_out, questions } =
            NetworkLimits::default();
        for row in [
            format!("| connections | {connections} |"),
            format!("| connections at one time | {at_once} |"),
            format!("| bytes that come in | {bytes_in} |"),
            format!("| bytes that go out | {bytes_out} |"),
            format!("| questions for names | {questions} |"),
        ] {
            assert!(documentation.contains(&row), "{row}");
        }
    }

    #[test]
    fn names_and_domains_are_told_apart() {
        let list = list(&["example.org:80-81", "*.example.org:81-82", "10.0.0.0/8:5432"]);
        assert_eq!(list.ports_of("example.org"), [80, 81]);
        assert_eq!(list.ports_of("a.b.example.org"), [81, 82]);
        for name in ["ample.org", "notexample.org", ".example.org", "example.org.evil", ""] {
            assert!(list.ports_of(name).is_empty() && !list.answers(name), "{name}");
        }
        let inside = "10.1.2.3".parse().unwrap();
        assert!(list.names_address(inside, 5432) && !list.names_address(inside, 80));
        assert!(list.covers(inside) && !list.covers("11.0.0.0".parse().unwrap()));
    }
}
