use std::io::Read;

use tar::PaxExtensions;

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
        for extension in PaxExtensions::new(&bytes) {
            let extension = extension.map_err(LayerError::Unreadable)?;
            let value = extension.value_bytes();
            match extension.key_bytes() {
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
