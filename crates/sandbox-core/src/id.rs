use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

const PREFIX: &str = "exec_";
/// Crockford's base 32: no I, L, O or U, so an id can be read aloud.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 26 digits of 5 bits hold the 128 bits of a UUID.
const DIGITS: usize = 26;

/// The ID of one execution: `exec_` and a unique text that sorts by time of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ExecutionId(Uuid);

/// A text that is not an execution id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an execution id: it is exec_ and {DIGITS} digits or capital letters")]
pub struct InvalidExecutionId {
    text: String,
}

impl ExecutionId {
    /// Generates an ID that sorts after every ID generated before by this process.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        let value = self.0.as_u128();
        for position in (0..DIGITS).rev() {
            let digit = (value >> (position * 5)) & 31;
            write!(f, "{}", char::from(ALPHABET[digit as usize]))?;
        }
        Ok(())
    }
}

impl FromStr for ExecutionId {
    type Err = InvalidExecutionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidExecutionId { text: text.to_owned() };
        let digits = text.strip_prefix(PREFIX).ok_or_else(invalid)?.as_bytes();
        if digits.len() != DIGITS {
            return Err(invalid());
        }
        let mut value: u128 = 0;
        for digit in digits {
            let number = ALPHABET.iter().position(|letter| letter == digit).ok_or_else(invalid)?;
            // 26 digits hold 130 bits: the two that do not fit must be zero.
            value = value.checked_mul(32).ok_or_else(invalid)? + number as u128;
        }
        Ok(Self(Uuid::from_u128(value)))
    }
}

impl From<ExecutionId> for String {
    fn from(id: ExecutionId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ExecutionId {
    type Error = InvalidExecutionId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation_and_read_back() {
        let ids: Vec<_> = (0..100).map(|_| ExecutionId::generate()).collect();
        let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
        assert!(texts.is_sorted(), "ids do not sort by age: {texts:?}");
        for (id, text) in ids.iter().zip(&texts) {
            assert_eq!(text.parse(), Ok(*id));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "exec_",
            "exec_0",
            "run_00000000000000000000000000",
            "exec_Z0000000000000000000000000",
        ] {
            assert!(text.parse::<ExecutionId>().is_err(), "{text:?} was taken");
        }
    }
}
