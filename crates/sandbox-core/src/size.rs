use std::fmt;
use std::str::FromStr;

/// A number of bytes, written `64K`, `128M` or `1G` with binary multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a size: write a whole number with K, M or G, such as 64K, 128M or 1G")]
pub struct InvalidSize {
    text: String,
}

impl ByteSize {
    /// A size in bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A size in KiB.
    pub const fn kib(kib: u64) -> Self {
        Self(kib * 1024)
    }

    /// A size in MiB.
    pub const fn mib(mib: u64) -> Self {
        Self(mib * 1024 * 1024)
    }

    /// The number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bytes as a length in memory; saturates on machines with small addresses.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSize { text: text.to_owned() };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| invalid())?;
        let multiple: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            _ => return Err(invalid()),
        };
        number.checked_mul(multiple).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn multiples_are_binary() {
        assert_eq!("64K".parse(), Ok(ByteSize::bytes(65_536)));
        assert_eq!("1g".parse(), Ok(ByteSize::mib(1024)));
        assert_eq!("12".parse(), Ok(ByteSize::bytes(12)));
        assert_eq!("3MiB".parse(), Ok(ByteSize::mib(3)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "K", "-1M", "1.5M", "1X", "99999999999999999999", "99999999999T", "1 M"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes: u64) {
            let size = ByteSize::bytes(bytes);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
