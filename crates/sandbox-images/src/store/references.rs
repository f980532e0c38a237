use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::directory::{Directory, names, read_record, write_record};
use crate::{Digest, ImageError, Reference};

/// The record of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReferenceRecord {
    /// The full name.
    pub(super) reference: String,
    /// The manifest of the image for this platform.
    pub(super) manifest: Digest,
    /// Seconds since 1970.
    pub(super) added_at: u64,
}

impl ReferenceRecord {
    pub(super) fn now(reference: &Reference, manifest: &Digest) -> Self {
        let added_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { reference: reference.canonical(), manifest: manifest.clone(), added_at }
    }
}

pub(super) fn write(
    directory: &Directory,
    temporary: &Path,
    reference: &Reference,
    record: &ReferenceRecord,
) -> Result<(), ImageError> {
    write_record(&directory.reference(reference), temporary, record)
}

pub(super) fn find(
    directory: &Directory,
    reference: &Reference,
) -> Result<ReferenceRecord, ImageError> {
    let found = read_record(&directory.reference(reference))?;
    found.ok_or_else(|| ImageError::NoSuchImage(reference.clone()))
}

/// Returns all names with their records, ordered by name.
pub(super) fn all(directory: &Directory) -> Result<Vec<(Reference, ReferenceRecord)>, ImageError> {
    let references = directory.references();
    let mut found = Vec::new();
    for name in names(&references)? {
        let path = references.join(name);
        // It may have been removed since the directory was listed.
        let Some(record) = read_record::<ReferenceRecord>(&path)? else { continue };
        let reference = record.reference.parse::<Reference>();
        let corrupt = |error: crate::InvalidReference| ImageError::Corrupt {
            path: path.clone(),
            reason: error.to_string(),
        };
        found.push((reference.map_err(corrupt)?, record));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(found)
}
