//! How orders and answers are written between our own processes.
//!
//! Both ends are the same executable, so there is no version to negotiate; the format exists to keep
//! the hot path free of a general serializer, and to let file contents be borrowed, not copied.

/// A message that does not read as what it should be: a bug of ours, never the program's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message between our own processes is malformed")]
pub(crate) struct Malformed;

/// Writes values one after the other.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Goes on after these bytes.
    pub(crate) fn after(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.bytes.push(u8::from(value));
        self
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
        self
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// Reads them back, borrowing from the message.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.take(1)?[0] != 0)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::default();
        writer.number(7).flag(true).text("é").bytes(b"\0").list(&["a", "b"], |w, item| {
            w.text(item);
        });
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.number(), Ok(7));
        assert_eq!(reader.flag(), Ok(true));
        assert_eq!(reader.text(), Ok("é"));
        assert_eq!(reader.bytes(), Ok(&b"\0"[..]));
        assert_eq!(reader.list(Reader::text), Ok(vec!["a", "b"]));
        assert_eq!(reader.number(), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_end_is_malformed() {
        let bytes = u64::MAX.to_le_bytes();
        assert_eq!(Reader::new(&bytes).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&bytes).list(Reader::number), Err(Malformed));
    }
}
