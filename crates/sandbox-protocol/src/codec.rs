//! Reading primitive values. Integers are little-endian; byte strings and lists carry their length as a `u64`.

use core::fmt;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The message ends before the value does.
    Truncated,
    /// A value is outside its range: an unknown tag, a flag that is neither 0 nor 1, text that is not UTF-8.
    InvalidValue,
    /// The message goes on after its last value.
    TrailingBytes,
    /// A frame is longer than its receiver accepts.
    TooLong,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Truncated => "malformed message: truncated",
            Self::InvalidValue => "malformed message: value out of range",
            Self::TrailingBytes => "malformed message: trailing bytes",
            Self::TooLong => "malformed message: frame too long",
        })
    }
}

impl core::error::Error for DecodeError {}

/// Reads values from a message and borrows from it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Reads this many bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Reads an array, such as the bytes of an integer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(*array)
    }

    /// Reads an integer.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a flag, which is 0 or 1.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(DecodeError::InvalidValue),
        }
    }

    /// Reads a length. It never exceeds the number of bytes that are left: every item takes at least one.
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        let length = usize::try_from(u64::from_le_bytes(self.array()?));
        let length = length.map_err(|_| DecodeError::Truncated)?;
        if length > self.bytes.len() { Err(DecodeError::Truncated) } else { Ok(length) }
    }

    /// Reads everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.bytes)
    }

    /// Checks that nothing is left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitive_values_are_read_in_order() {
        let mut reader = Reader::new(&[1, 0, 0, 0, 1, 7, 8, 9]);
        assert_eq!(reader.u32(), Ok(1));
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.take(1), Ok(&[7][..]));
        assert_eq!(reader.clone().finish(), Err(DecodeError::TrailingBytes));
        assert_eq!(reader.rest(), [8, 9]);
        assert_eq!(reader.array::<1>(), Err(DecodeError::Truncated));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn values_out_of_range_are_errors() {
        assert_eq!(Reader::new(&[2]).bool(), Err(DecodeError::InvalidValue));
        assert_eq!(Reader::new(&[1, 2]).take(3), Err(DecodeError::Truncated));
        assert_eq!(Reader::new(&u64::MAX.to_le_bytes()).length(), Err(DecodeError::Truncated));
        let one_byte_left = [&2_u64.to_le_bytes()[..], &[0]].concat();
        assert_eq!(Reader::new(&one_byte_left).length(), Err(DecodeError::Truncated));
    }
}
