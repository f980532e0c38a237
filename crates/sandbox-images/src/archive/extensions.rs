use std::io::{self, Read};

use super::printable;
use crate::LayerError;

/// Such entries are held in memory.
const LONGEST: u64 = 1 << 20;

/// What entries of their own say about the next one.
#[derive(Default)]
pub(super) struct Said {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) sparse: bool,
}

impl Said {
    /// By the extension of POSIX.
    pub(super) fn hear_pax(&mut self, entry: &mut impl Read) -> Result<(), LayerError> {
        let bytes = bounded(entry)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (key, value, behind) = record(rest).ok_or_else(malformed)?;
            rest = behind;
            match key {
                // Nothing is said by an empty one.
                _ if value.is_empty() => {}
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => self.size = Some(number(value)?),
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                // Times, owners and attributes, of which none is kept.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Takes `LENGTH KEY=VALUE` and a line's end apart, and what is behind it. The length counts all of it: values are
/// bytes of any kind, ends of lines among them, which is why the tar library's own reader cannot be used.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let (line, behind) = bytes.split_at_checked(length)?;
    let line = line.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((&line[..equals], &line[equals + 1..], behind))
}

fn malformed() -> LayerError {
    LayerError::Unreadable(io::Error::other("an extension header is malformed"))
}

/// A name by the extension of GNU, without the zero byte that ends it.
pub(super) fn gnu_name(entry: &mut impl Read) -> Result<Vec<u8>, LayerError> {
    let mut bytes = bounded(entry)?;
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

fn bounded(entry: &mut impl Read) -> Result<Vec<u8>, LayerError> {
    let mut bytes = Vec::new();
    entry.take(LONGEST + 1).read_to_end(&mut bytes).map_err(LayerError::Unreadable)?;
    if bytes.len() as u64 > LONGEST {
        let reason = format!("has a name or attributes of more than {LONGEST} bytes").into();
        return Err(LayerError::Entry { path: printable(&bytes), reason });
    }
    Ok(bytes)
}

fn number(value: &[u8]) -> Result<u64, LayerError> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| LayerError::Entry {
        path: printable(value),
        reason: "is a size that is no number".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &[u8]) -> Result<Said, String> {
        let mut said = Said::default();
        let hear = said.hear_pax(&mut &text[..]);
        hear.map(|()| said).map_err(|error| sandbox_core::with_causes(&error))
    }

    #[test]
    fn values_are_bytes_of_any_kind() {
        let text = b"30 SCHILY.xattr.x=\n9 path=b\n\xff\n12 path=a\nb\n11 size=17\n";
        let said = heard(text).unwrap();
        assert_eq!(said.path.unwrap(), b"a\nb");
        assert_eq!(said.size, Some(17));
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
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
                heard(text.as_bytes()).err().unwrap_or_else(|| panic!("{text:?} was taken"));
            assert!(error.contains("malformed"), "{text:?}: {error}");
        }
    }
}
