use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// Where an image comes from and what it is called there: `HOST[:PORT]/NAME[:TAG|@DIGEST]`.
///
/// Names without a host are those of Docker Hub, and `latest` is the tag where none is said, as everybody
/// who writes them expects: `python:3.12` is `docker.io/library/python:3.12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    name: String,
    version: Version,
}

/// Which image of those that share a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// What the registry calls so at the moment.
    Tag(String),
    /// This one, whatever it is called.
    Digest(Digest),
}

/// A text that names no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no name of an image: {reason}")]
pub struct InvalidReference {
    text: String,
    reason: &'static str,
}

const DOCKER_HUB: &str = "docker.io";
/// What people and other programs write for Docker Hub.
const ALSO_DOCKER_HUB: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];
/// Where Docker Hub keeps what has no owner in its name.
const WITHOUT_OWNER: &str = "library/";
const LONGEST_NAME: usize = 255;
const LONGEST_TAG: usize = 128;
const LONGEST_SHOWN: usize = 200;

impl Reference {
    /// The registry as people write it.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Where the registry is reached, with its port if that is not the usual one.
    pub fn address(&self) -> &str {
        if self.registry == DOCKER_HUB { "registry-1.docker.io" } else { &self.registry }
    }

    /// The name in the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tag or the digest.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The whole of it, the same for every way to write it.
    pub fn canonical(&self) -> String {
        format!("{}/{}{}", self.registry, self.name, self.version)
    }

    /// Whether the registry is on this very machine, so that nobody is on the way to it.
    pub fn is_on_loopback(&self) -> bool {
        let host = match self.registry.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.registry,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| {
            let text: String = text.chars().take(LONGEST_SHOWN).collect();
            InvalidReference { text: text.escape_debug().to_string(), reason }
        })
    }
}

fn parse(text: &str) -> Result<Reference, &'static str> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => {
            let wrong = |_| "behind '@' stands a digest, 'sha256:' and 64 hexadecimal digits";
            (rest, Some(digest.parse().map_err(wrong)?))
        }
        None => (text, None),
    };
    // A colon before the last slash is that of a port.
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err("a tag has letters, digits, '.', '_' and '-', 128 at most");
    }
    let (registry, name) = match path.split_once('/') {
        Some((first, name)) if looks_like_host(first) => (first, name.to_owned()),
        Some(_) => (DOCKER_HUB, path.to_owned()),
        None => (DOCKER_HUB, format!("{WITHOUT_OWNER}{path}")),
    };
    if !is_host(registry) {
        return Err("what stands before the first '/' is no host");
    }
    let registry = if ALSO_DOCKER_HUB.contains(&registry) { DOCKER_HUB } else { registry };
    let name = match registry {
        DOCKER_HUB if !name.contains('/') => format!("{WITHOUT_OWNER}{name}"),
        _ => name,
    };
    if name.len() > LONGEST_NAME || !name.split('/').all(is_part_of_name) {
        return Err("a name has small letters, digits and single '.', '_' or '-' between them, \
                    in parts separated by '/'");
    }
    let version = match digest {
        // Where both are written, the digest says more.
        Some(digest) => Version::Digest(digest),
        None => Version::Tag(tag.unwrap_or("latest").to_owned()),
    };
    Ok(Reference { registry: registry.to_owned(), name, version })
}

/// Names on Docker Hub have neither of these in their first part, which is how all tools tell them apart.
fn looks_like_host(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':'])
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.split('.').all(|part| {
            let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            letters && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
        }),
    };
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_tag(tag: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let bare = tag.starts_with(['.', '-']);
    !tag.is_empty() && tag.len() <= LONGEST_TAG && !bare && tag.bytes().all(plain)
}

fn is_part_of_name(part: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |byte: Option<&u8>| byte.is_some_and(|byte| alphanumeric(*byte));
    let bytes = part.as_bytes();
    let plain = bytes.iter().all(|byte| alphanumeric(*byte) || matches!(byte, b'.' | b'_' | b'-'));
    plain && ends_well(bytes.first()) && ends_well(bytes.last()) && !part.contains("..")
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, ":{tag}"),
            Self::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

/// As short as it can be written.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.registry == DOCKER_HUB {
            let name = self.name.strip_prefix(WITHOUT_OWNER).filter(|name| !name.contains('/'));
            return write!(f, "{}{}", name.unwrap_or(&self.name), self.version);
        }
        f.write_str(&self.canonical())
    }
}

#[cfg(test)]
mod tests;
