use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The key of an entry: a hash of everything that the entry depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// A text that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is 64 hexadecimal digits in lower case")]
pub struct InvalidKey;

/// Builds a key from named parts.
///
/// Each name and value is hashed after its length, so that different lists of parts never give the same bytes:
/// `("ab", "c")` and `("a", "bc")` differ, and so do one part and two.
#[derive(Clone, Debug)]
pub(crate) struct KeyBuilder(Sha256);

impl KeyBuilder {
    /// Starts a key for a purpose. Keys for different purposes always differ.
    #[must_use]
    pub(crate) fn new(purpose: &str) -> Self {
        let mut builder = Self(Sha256::new());
        builder.framed(purpose.as_bytes());
        builder
    }

    /// Adds a part. The order of parts matters.
    #[must_use]
    pub(crate) fn part(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.framed(name.as_bytes());
        self.framed(value.as_ref());
        self
    }

    /// The key of all parts so far.
    pub(crate) fn finish(self) -> Key {
        Key(self.0.finalize().into())
    }

    fn framed(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl Key {
    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |letter: u8| match letter {
            b'0'..=b'9' => Ok(letter - b'0'),
            b'a'..=b'f' => Ok(letter - b'a' + 10),
            _ => Err(InvalidKey),
        };
        let mut key = [0; 32];
        if text.len() != 2 * key.len() {
            return Err(InvalidKey);
        }
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn key(purpose: &str, parts: &[(String, Vec<u8>)]) -> Key {
        let builder = KeyBuilder::new(purpose);
        let add =
            |builder: KeyBuilder, (name, value): &(String, Vec<u8>)| builder.part(name, value);
        parts.iter().fold(builder, add).finish()
    }

    #[test]
    fn a_key_reads_back_and_nothing_else_does() {
        let key = KeyBuilder::new("test").part("a", "b").finish();
        let text = key.to_string();
        assert_eq!(text.parse(), Ok(key));
        for wrong in [&text[1..], &text.to_uppercase(), &format!("{text}0"), &"é".repeat(32), ""] {
            assert_eq!(wrong.parse::<Key>(), Err(InvalidKey), "{wrong}");
        }
    }

    #[test]
    fn the_bytes_that_are_hashed_stay_the_same() {
        // A change here would make every entry of every store unreachable.
        let wanted =
            Sha256::digest(b"\x04\0\0\0\0\0\0\0test\x01\0\0\0\0\0\0\0a\x02\0\0\0\0\0\0\0bc");
        let key = KeyBuilder::new("test").part("a", "bc").finish();
        assert_eq!(key.as_bytes()[..], wanted[..]);
    }

    #[test]
    fn bytes_that_move_between_parts_change_the_key() {
        let keys = [
            KeyBuilder::new("p").part("ab", "c"),
            KeyBuilder::new("p").part("a", "bc"),
            KeyBuilder::new("pa").part("b", "c"),
            KeyBuilder::new("p").part("a", "b").part("c", ""),
            KeyBuilder::new("p").part("a", "").part("b", "c"),
            KeyBuilder::new("p").part("b", "c").part("a", ""),
            KeyBuilder::new("p").part("ab", b"\x01\0\0\0\0\0\0\0c"),
        ];
        let keys: std::collections::BTreeSet<Key> =
            keys.into_iter().map(KeyBuilder::finish).collect();
        assert_eq!(keys.len(), 7);
    }

    proptest! {
        /// Names and values are few and short, so that lists which are nearly the same are common.
        #[test]
        fn keys_are_the_same_when_all_parts_are(
            left in vec(("[ab]{0,2}", vec(0..2_u8, 0..3)), 0..3),
            right in vec(("[ab]{0,2}", vec(0..2_u8, 0..3)), 0..3),
        ) {
            prop_assert_eq!(key("test", &left) == key("test", &right), left == right);
            prop_assert_eq!(key("test", &left), key("test", &left));
        }
    }
}
