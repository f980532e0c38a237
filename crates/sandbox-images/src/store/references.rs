use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::directory::{Directory, names, read_record, write_record};
use crate::{Digest, ImageError, Reference};

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    /// The name in full.
    pub(super) reference: String,
    /// The manifest of the image for this machine.
    pub(super) manifest: Digest,
    /// Seconds since 1970.
    pub(super) added_at: u64,
}

impl Named {
    pub(super) fn now(reference: &Reference, manifest: &Digest) -> Self {
        let added_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { reference: reference.canonical(), manifest: manifest.clone(), added_at }
    }
}

pub(super) fn write(
    directory: &Directory,
    temporary: &Path,
    reference: &Reference,
    named: &Named,
) -> Result<(), ImageError> {
    write_record(&directory.reference(reference), temporary, named)
}

pub(super) fn find(directory: &Directory, reference: &Reference) -> Result<Named, ImageError> {
    let found = read_record(&directory.reference(reference))?;
    found.ok_or_else(|| ImageError::NoSuchImage(reference.clone()))
}

/// All of them, in the order of their names.
pub(super) fn all(directory: &Directory) -> Result<Vec<(Reference, Named)>, ImageError> {
    let place = directory.references();
    let mut found = Vec::new();
    for name in names(&place)? {
        let path = place.join(name);
        // One that was removed since is none.
        let Some(named) = read_record::<Named>(&path)? else { continue };
        let reference = named.reference.parse::<Reference>();
        let damaged = |error: crate::InvalidReference| ImageError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        };
        found.push((reference.map_err(damaged)?, named));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(found)
}
