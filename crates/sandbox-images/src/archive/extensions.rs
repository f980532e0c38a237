use std::io::{self, Read};

use super::printable;
use crate::LayerError;

/// The maximum size of an extension header, which is held in memory.
const MAX_BYTES: u64 = 1 << 20;

/// Properties of the next entry, from extension headers before it.
#[derive(Default)]
pub(super) struct Extensions {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) sparse: bool,
}

impl Extensions {
    /// Parses a POSIX (pax) extension header.
    pub(super) fn parse_pax(&mut self, entry: &mut impl Read) -> Result<(), LayerError> {
        let bytes = bounded(entry)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (key, value, following) = record(rest).ok_or_else(malformed)?;
            rest = following;
            match key {
                // An empty value means that the record does not apply.
                _ if value.is_empty() => {}
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => self.size = Some(number(value)?),
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                // Times, owners and attributes are not kept.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses one record, `LENGTH KEY=VALUE\n`, and returns the bytes behind it too. The length includes everything:
/// values may contain any bytes, line breaks too, which the tar library's own parser does not support.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let (line, following) = bytes.split_at_checked(length)?;
    let line = line.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((&line[..equals], &line[equals + 1..], following))
}

fn malformed() -> LayerError {
    LayerError::Unreadable(io::Error::other("malformed extension header"))
}

/// Reads a name from a GNU extension header, without its terminating zero byte.
pub(super) fn gnu_name(entry: &mut impl Read) -> Result<Vec<u8>, LayerError> {
    let mut bytes = bounded(entry)?;
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

fn bounded(entry: &mut impl Read) -> Result<Vec<u8>, LayerError> {
    let mut bytes = Vec::new();
    entry.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(LayerError::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        let reason = format!("has a name or attributes of more than {MAX_BYTES} bytes").into();
        return Err(LayerError::Entry { path: printable(&bytes), reason });
    }
    Ok(bytes)
}

fn number(value: &[u8]) -> Result<u64, LayerError> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| LayerError::Entry {
        path: printable(value),
        reason: "is not a valid size".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<Extensions, String> {
        let mut extensions = Extensions::default();
        let parsed = extensions.parse_pax(&mut &text[..]);
        parsed.map(|()| extensions).map_err(|error| sandbox_core::with_causes(&error))
    }

    #[test]
    fn values_may_contain_any_bytes() {
        let text = b"30 SCHILY.xattr.x=\n9 path=b\n\xff\n12 path=a\nb\n11 size=17\n";
        let extensions = parse(text).unwrap();
        assert_eq!(extensions.path.unwrap(), b"a\nb");
        assert_eq!(extensions.size, Some(17));
    }

    #[test]
    fn malformed_records_are_rejected() {
        for text in [
            "9 path=a",
            "99 path=a\n",
            "1 path=a\n",
            "x path=a\n",
            "7 path\n",
            " path=a\n",
            "0 ",
            "-9 path=a\n",
        ] {
            let error =
                parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text:?} was accepted"));
            assert!(error.contains("malformed"), "{text:?}: {error}");
        }
    }
}
