use std::fmt;

use serde::{Deserialize, Serialize};

use super::Descriptor;
use crate::ImageError;

/// What an image runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

/// More of them would fill the terminal.
const MOST_TOLD: usize = 8;

impl Platform {
    /// This machine, in the words of images.
    pub(crate) fn here() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Whether what was made for the other runs here.
    pub(crate) fn runs(&self, other: &Self) -> bool {
        self.os == other.os && self.architecture == other.architecture
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // They are chosen by strangers and end up in messages.
        let short =
            |text: &str| text.chars().take(20).collect::<String>().escape_debug().to_string();
        write!(f, "{}/{}", short(&self.os), short(&self.architecture))
    }
}

/// The image of an index that runs here.
///
/// Where none says what it is for, the first is taken: its configuration says it, and is asked later.
pub(crate) fn choose(manifests: &[Descriptor]) -> Result<&Descriptor, ImageError> {
    let here = Platform::here();
    let fits = |descriptor: &&Descriptor| {
        descriptor.platform.as_ref().is_some_and(|platform| here.runs(platform))
    };
    let unsaid = |descriptor: &&Descriptor| descriptor.platform.is_none();
    let found = manifests.iter().find(fits).or_else(|| manifests.iter().find(unsaid));
    found.ok_or_else(|| {
        let said = manifests.iter().filter_map(|descriptor| descriptor.platform.as_ref());
        let said: Vec<String> = said.take(MOST_TOLD).map(ToString::to_string).collect();
        let found = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
        ImageError::Platform { wanted: here.to_string(), found }
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
    fn the_image_for_this_machine_is_taken() {
        let here = Platform::here();
        let index = [
            descriptor("other", Some(("linux", "s390x"))),
            descriptor("unsaid", None),
            descriptor("ours", Some(("linux", &here.architecture))),
            descriptor("attestation", Some(("unknown", "unknown"))),
        ];
        assert_eq!(choose(&index).unwrap().digest, Digest::of(b"ours"));
        assert_eq!(choose(&index[..2]).unwrap().digest, Digest::of(b"unsaid"));
        let error = choose(&index[..1]).unwrap_err().to_string();
        assert!(error.contains("only for linux/s390x"), "{error}");
        assert!(choose(&[]).unwrap_err().to_string().contains("only for nothing"));
    }
}
