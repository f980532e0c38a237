use std::fmt;
use std::str::FromStr;

use crate::Digest;

/// The name of an image: `[HOST[:PORT]/]NAME[:TAG|@DIGEST]`.
///
/// As in Docker, the default registry is Docker Hub and the default tag `latest`: `python:3.12` is
/// `docker.io/library/python:3.12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    name: String,
    version: Version,
}

/// Selects one of the images that share a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The image that currently has this tag in the registry.
    Tag(String),
    /// The image with this digest, whatever its tags are.
    Digest(Digest),
}

/// A text that is not a valid image name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid image name '{text}': {reason}")]
pub struct InvalidReference {
    text: String,
    reason: &'static str,
}

const DOCKER_HUB: &str = "docker.io";
/// Other names of Docker Hub.
const DOCKER_HUB_ALIASES: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];
/// The namespace of official images on Docker Hub.
const OFFICIAL_PREFIX: &str = "library/";
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;
const MAX_SHOWN: usize = 200;

impl Reference {
    /// The registry, as written in the name.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host of the registry's API, with its port if it is not the default.
    pub fn address(&self) -> &str {
        if self.registry == DOCKER_HUB { "registry-1.docker.io" } else { &self.registry }
    }

    /// The repository in the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tag or the digest.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The full name, the same for every way to write it.
    pub fn canonical(&self) -> String {
        format!("{}/{}{}", self.registry, self.name, self.version)
    }

    /// Whether the registry is on this host, so that nobody can intercept the connection.
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
            let text: String = text.chars().take(MAX_SHOWN).collect();
            InvalidReference { text: text.escape_debug().to_string(), reason }
        })
    }
}

fn parse(text: &str) -> Result<Reference, &'static str> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => {
            let invalid = |_| "expected a digest after '@': 'sha256:' and 64 hexadecimal digits";
            (rest, Some(digest.parse().map_err(invalid)?))
        }
        None => (text, None),
    };
    // A colon before the last slash separates a port, not a tag.
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err("a tag consists of at most 128 letters, digits, '.', '_' and '-'");
    }
    let (registry, name) = match path.split_once('/') {
        Some((first, name)) if looks_like_host(first) => (first, name.to_owned()),
        Some(_) => (DOCKER_HUB, path.to_owned()),
        None => (DOCKER_HUB, format!("{OFFICIAL_PREFIX}{path}")),
    };
    if !is_host(registry) {
        return Err("invalid registry host before the first '/'");
    }
    let registry = if DOCKER_HUB_ALIASES.contains(&registry) { DOCKER_HUB } else { registry };
    let name = match registry {
        DOCKER_HUB if !name.contains('/') => format!("{OFFICIAL_PREFIX}{name}"),
        _ => name,
    };
    if name.len() > MAX_NAME || !name.split('/').all(is_name_component) {
        return Err(
            "a name consists of components separated by '/', of lower-case letters, digits and \
                    '.', '_' or '-' between them",
        );
    }
    let version = match digest {
        // A digest takes precedence over a tag.
        Some(digest) => Version::Digest(digest),
        None => Version::Tag(tag.unwrap_or("latest").to_owned()),
    };
    Ok(Reference { registry: registry.to_owned(), name, version })
}

/// The rule of all tools: the first component of a name on Docker Hub contains neither of these characters.
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
    !tag.is_empty() && tag.len() <= MAX_TAG && !bare && tag.bytes().all(plain)
}

fn is_name_component(part: &str) -> bool {
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

/// The short form, without the defaults.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.registry == DOCKER_HUB {
            let name = self.name.strip_prefix(OFFICIAL_PREFIX).filter(|name| !name.contains('/'));
            return write!(f, "{}{}", name.unwrap_or(&self.name), self.version);
        }
        f.write_str(&self.canonical())
    }
}

#[cfg(test)]
mod tests;
