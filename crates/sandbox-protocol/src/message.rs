//! Values that know how to encode and decode themselves, and the macro that derives both from one list of fields.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use crate::codec::{DecodeError, Reader};

/// Appends encoded values to a buffer.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends to these bytes.
    pub fn append_to(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Writes bytes without their length. The reader must know where they end.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes the number of bytes or items that follow.
    pub fn length(&mut self, length: usize) {
        self.raw(&(length as u64).to_le_bytes());
    }

    /// Returns the buffer.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A value that travels between processes. `'a` is the lifetime of the bytes that a decoded value borrows from.
///
/// The encoding is canonical: `decode` accepts `bytes` only if encoding its result yields `bytes`.
pub trait Message<'a>: Sized {
    /// Appends the value to a buffer.
    fn encode_to(&self, writer: &mut Writer);

    /// Reads the value from the front of a message.
    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Encodes the value alone.
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.encode_to(&mut writer);
        writer.into_bytes()
    }

    /// Decodes a value that fills the whole message.
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let message = Self::decode_from(&mut reader)?;
        reader.finish()?;
        Ok(message)
    }
}

macro_rules! integer {
    ($($integer:ty),*) => { $(
        impl<'a> Message<'a> for $integer {
            fn encode_to(&self, writer: &mut Writer) {
                writer.raw(&self.to_le_bytes());
            }

            fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader.array().map(<$integer>::from_le_bytes)
            }
        }
    )* };
}

integer!(u8, u16, u32, u64, i32);

impl<'a> Message<'a> for bool {
    fn encode_to(&self, writer: &mut Writer) {
        writer.raw(&[u8::from(*self)]);
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.bool()
    }
}

impl<'a> Message<'a> for &'a [u8] {
    fn encode_to(&self, writer: &mut Writer) {
        writer.length(self.len());
        writer.raw(self);
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let length = reader.length()?;
        reader.take(length)
    }
}

impl<'a> Message<'a> for &'a str {
    fn encode_to(&self, writer: &mut Writer) {
        self.as_bytes().encode_to(writer);
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = <&[u8]>::decode_from(reader)?;
        core::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidValue)
    }
}

impl<'a> Message<'a> for String {
    fn encode_to(&self, writer: &mut Writer) {
        self.as_str().encode_to(writer);
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        <&str>::decode_from(reader).map(str::to_owned)
    }
}

impl<'a, T: Message<'a>> Message<'a> for Vec<T> {
    fn encode_to(&self, writer: &mut Writer) {
        writer.length(self.len());
        for item in self {
            item.encode_to(writer);
        }
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        // The vector grows with what was read and not with what was announced.
        let count = reader.length()?;
        (0..count).map(|_| T::decode_from(reader)).collect()
    }
}

impl<'a, T: Message<'a>> Message<'a> for Option<T> {
    fn encode_to(&self, writer: &mut Writer) {
        self.is_some().encode_to(writer);
        if let Some(value) = self {
            value.encode_to(writer);
        }
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.bool()?.then(|| T::decode_from(reader)).transpose()
    }
}

impl<'a, A: Message<'a>, B: Message<'a>> Message<'a> for (A, B) {
    fn encode_to(&self, writer: &mut Writer) {
        self.0.encode_to(writer);
        self.1.encode_to(writer);
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok((A::decode_from(reader)?, B::decode_from(reader)?))
    }
}

impl<'a, const N: usize> Message<'a> for [u64; N] {
    fn encode_to(&self, writer: &mut Writer) {
        for number in self {
            number.encode_to(writer);
        }
    }

    fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u64::decode_from(reader)?;
        }
        Ok(numbers)
    }
}

/// Implements [`Message`] for a type from one list, so that encoder and decoder cannot disagree.
///
/// * `struct<'a> Type { field, … }`: the fields in the order in which they travel.
/// * `enum<'a> Type { tag => Variant { field, … }, … }`: one byte for the tag, then the fields. `Variant {}` has none,
///   `Variant(value)` one without a name, and `Variant(..bytes)` all the bytes up to the end of the message.
macro_rules! message {
    (struct<$life:lifetime> $name:ty { $($field:ident),* $(,)? }) => {
        impl<$life> $crate::Message<$life> for $name {
            fn encode_to(&self, writer: &mut $crate::Writer) {
                $( $crate::Message::encode_to(&self.$field, writer); )*
            }

            fn decode_from(
                reader: &mut $crate::Reader<$life>,
            ) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $( $field: $crate::Message::decode_from(reader)? ),* })
            }
        }
    };
    (enum<$life:lifetime> $name:ty { $($tag:literal => $variant:ident $fields:tt),* $(,)? }) => {
        impl<$life> $crate::Message<$life> for $name {
            fn encode_to(&self, writer: &mut $crate::Writer) {
                match self {
                    $( message!(@pattern $variant $fields) => {
                        writer.raw(&[$tag]);
                        message!(@encode writer $fields);
                    } )*
                }
            }

            fn decode_from(
                reader: &mut $crate::Reader<$life>,
            ) -> Result<Self, $crate::DecodeError> {
                match reader.array()? {
                    $( [$tag] => Ok(message!(@decode reader $variant $fields)), )*
                    [_] => Err($crate::DecodeError::InvalidValue),
                }
            }
        }
    };
    (@pattern $variant:ident { $($field:ident),* }) => { Self::$variant { $($field),* } };
    (@pattern $variant:ident ($value:ident)) => { Self::$variant($value) };
    (@pattern $variant:ident (..$bytes:ident)) => { Self::$variant($bytes) };
    (@encode $writer:ident { $($field:ident),* }) => {
        $( $crate::Message::encode_to($field, $writer); )*
    };
    (@encode $writer:ident ($value:ident)) => { $crate::Message::encode_to($value, $writer) };
    (@encode $writer:ident (..$bytes:ident)) => { $writer.raw($bytes) };
    (@decode $reader:ident $variant:ident { $($field:ident),* }) => {
        Self::$variant { $( $field: $crate::Message::decode_from($reader)? ),* }
    };
    (@decode $reader:ident $variant:ident ($value:ident)) => {
        Self::$variant($crate::Message::decode_from($reader)?)
    };
    (@decode $reader:ident $variant:ident (..$bytes:ident)) => { Self::$variant($reader.rest()) };
}

pub(crate) use message;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn hostile<'a, T: Message<'a>>(bytes: &'a [u8]) -> DecodeError {
        T::decode(bytes).map(drop).expect_err("it was accepted")
    }

    #[test]
    fn each_kind_of_value_has_one_encoding() {
        assert_eq!(0x0102_u16.encode(), [2, 1]);
        assert_eq!((-2_i32).encode(), [254, 255, 255, 255]);
        assert_eq!("é".encode(), [2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0xa9]);
        assert_eq!(vec![true, false].encode(), [2, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(Some(7_u8).encode(), [1, 7]);
        assert_eq!(None::<u8>.encode(), [0]);
        assert_eq!((1_u8, "").encode(), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!([1_u64].encode(), 1_u64.encode());
    }

    #[test]
    fn other_encodings_are_refused() {
        assert_eq!(hostile::<bool>(&[2]), DecodeError::InvalidValue);
        assert_eq!(hostile::<Option<u8>>(&[1]), DecodeError::Truncated);
        assert_eq!(hostile::<Option<u8>>(&[0, 0]), DecodeError::TrailingBytes);
        assert_eq!(hostile::<&str>(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff]), DecodeError::InvalidValue);
        assert_eq!(hostile::<u32>(&[0; 3]), DecodeError::Truncated);
    }

    #[test]
    fn a_length_beyond_the_end_reserves_no_memory() {
        let announced = [u64::MAX, 1 << 40].map(|length| [length.encode(), vec![0; 64]].concat());
        for bytes in &announced {
            assert_eq!(hostile::<&[u8]>(bytes), DecodeError::Truncated);
            assert_eq!(hostile::<Vec<u64>>(bytes), DecodeError::Truncated);
            assert_eq!(hostile::<Vec<Vec<u8>>>(bytes), DecodeError::Truncated);
        }
    }
}
