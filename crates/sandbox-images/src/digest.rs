use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What content is found by: `sha256:` and 64 digits. A value that exists is safe as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// A text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no digest: a digest is 'sha256:' and 64 hexadecimal digits in lower case")]
pub struct InvalidDigest(String);

const ALGORITHM: &str = "sha256:";
/// More of a wrong text would not help anybody.
const LONGEST_SHOWN: usize = 100;

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::new().chain_update(bytes))
    }

    /// The digest of all that a hash has seen.
    pub(crate) fn from_hash(hash: Sha256) -> Self {
        let digits = hash.finalize().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        Self(digits)
    }

    /// The 64 digits, without the name of the algorithm.
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
        let wrong = || InvalidDigest(text.chars().take(LONGEST_SHOWN).collect());
        digits.map(|digits| Self(digits.to_owned())).ok_or_else(wrong)
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
    fn a_digest_reads_back() {
        let digest = Digest::of(b"");
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
    }

    #[test]
    fn nothing_else_does() {
        let digits = "a".repeat(64);
        for wrong in [
            digits.clone(),
            format!("sha512:{digits}"),
            format!("sha256:{digits}a"),
            format!("sha256:{}", digits.to_uppercase()),
            "sha256:../../x".to_owned(),
            format!("sha256:../{}", "a".repeat(61)),
            "sha256:".to_owned() + &"é".repeat(32),
            String::new(),
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }
}
