use std::fmt;

use serde::{Deserialize, Serialize};

use super::Descriptor;
use crate::ImageError;

/// An operating system and a CPU architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

/// The maximum number of platforms in an error message.
const MAX_LISTED: usize = 8;

impl Platform {
    /// The platform of this host, in the terms of OCI images.
    pub(crate) fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Whether images for the other platform run on this one.
    pub(crate) fn supports(&self, other: &Self) -> bool {
        self.os == other.os && self.architecture == other.architecture
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are untrusted and appear in messages.
        let short =
            |text: &str| text.chars().take(20).collect::<String>().escape_debug().to_string();
        write!(f, "{}/{}", short(&self.os), short(&self.architecture))
    }
}

/// Selects the image of an index that runs on this host.
///
/// If there is none, selects the first without a platform: its configuration has one, which is checked later.
pub(crate) fn select_platform(manifests: &[Descriptor]) -> Result<&Descriptor, ImageError> {
    let host = Platform::host();
    let matches = |descriptor: &&Descriptor| {
        descriptor.platform.as_ref().is_some_and(|platform| host.supports(platform))
    };
    let unspecified = |descriptor: &&Descriptor| descriptor.platform.is_none();
    let found = manifests.iter().find(matches).or_else(|| manifests.iter().find(unspecified));
    found.ok_or_else(|| {
        let platforms = manifests.iter().filter_map(|descriptor| descriptor.platform.as_ref());
        let platforms: Vec<String> = platforms.take(MAX_LISTED).map(ToString::to_string).collect();
        let found = if platforms.is_empty() { "nothing".to_owned() } else { platforms.join(", ") };
        ImageError::Platform { host: host.to_string(), found }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn descriptor(content: &str, platform: Option<(&str, &str)>) -> Descriptor {
        let platform = platform.map(|(os, architecture)| Platform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: None,
        });
        let digest = Digest::of(content.as_bytes());
        Descriptor { media_type: String::new(), digest, size: 1, platform, annotations: None }
    }

    #[test]
    fn the_image_for_this_platform_is_selected() {
        let host = Platform::host();
        let index = [
            descriptor("other", Some(("linux", "s390x"))),
            descriptor("unspecified", None),
            descriptor("host", Some(("linux", &host.architecture))),
            descriptor("attestation", Some(("unknown", "unknown"))),
        ];
        assert_eq!(select_platform(&index).unwrap().digest, Digest::of(b"host"));
        assert_eq!(select_platform(&index[..2]).unwrap().digest, Digest::of(b"unspecified"));
        let error = select_platform(&index[..1]).unwrap_err().to_string();
        assert!(error.contains("only for linux/s390x"), "{error}");
        assert!(select_platform(&[]).unwrap_err().to_string().contains("only for nothing"));
    }
}
