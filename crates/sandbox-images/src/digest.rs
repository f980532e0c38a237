use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The digest that identifies content: `sha256:` and 64 hexadecimal digits. Every value is safe as a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// A text that is not a valid digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest '{0}': expected 'sha256:' and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest(String);

const ALGORITHM: &str = "sha256:";
/// The maximum length of an invalid text in an error message.
const MAX_SHOWN: usize = 100;

impl Digest {
    /// Computes the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::new().chain_update(bytes))
    }

    /// Finishes a hash.
    pub(crate) fn from_hash(hash: Sha256) -> Self {
        let digits = hash.finalize().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        Self(digits)
    }

    /// The 64 digits, without the algorithm.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(ALGORITHM).filter(|digits| {
            digits.len() == 64
                && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        let invalid = || InvalidDigest(text.chars().take(MAX_SHOWN).collect());
        digits.map(|digits| Self(digits.to_owned())).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_a_round_trip() {
        let digest = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
    }

    #[test]
    fn invalid_digests_are_rejected() {
        let digits = "a".repeat(64);
        for invalid in [
            digits.clone(),
            format!("sha512:{digits}"),
            format!("sha256:{digits}a"),
            format!("sha256:{}", digits.to_uppercase()),
            "sha256:../../x".to_owned(),
            format!("sha256:../{}", "a".repeat(61)),
            "sha256:".to_owned() + &"é".repeat(32),
            String::new(),
        ] {
            assert!(invalid.parse::<Digest>().is_err(), "{invalid}");
        }
    }
}
