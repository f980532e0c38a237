//! The form of `docker save` that is older than the standard: a list of images, with paths of their files.

use serde::Deserialize;

use super::{Files, Found};
use crate::archive::plain;
use crate::documents::Manifest;
use crate::store::Staging;
use crate::{Digest, ImageError, Reference};

pub(super) const LIST: &str = "manifest.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    config: String,
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Vec<String>,
}

pub(super) fn find(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    list: &Digest,
) -> Result<Vec<Found>, ImageError> {
    let mut found = Vec::new();
    for entry in entries(staging, list)? {
        if entry.layers.len() > staging.limits.layers {
            let what = "the number of its layers".to_owned();
            return Err(ImageError::TooMuch { what, most: staging.limits.layers as u64 });
        }
        let config = take(files, staging, &entry.config, "its configuration")?;
        let mut layers = Vec::new();
        for path in &entry.layers {
            let what = format!("layer {}", layers.len() + 1);
            layers.push(take(files, staging, path, &what)?);
        }
        let manifest = Manifest::made_for(&config, &layers);
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|error| ImageError::document("manifest", error))?;
        found.push(Found { manifest: staging.keep_bytes(&manifest)?, names: parse(&entry)? });
    }
    Ok(found)
}

/// The names of all images in the list.
pub(super) fn names(staging: &Staging<'_>, list: &Digest) -> Result<Vec<Reference>, ImageError> {
    let mut names = Vec::new();
    for entry in entries(staging, list)? {
        names.extend(parse(&entry)?);
    }
    Ok(names)
}

fn entries(staging: &Staging<'_>, list: &Digest) -> Result<Vec<Entry>, ImageError> {
    let bytes = staging.document(list, LIST)?;
    let entries: Vec<Entry> =
        serde_json::from_slice(&bytes).map_err(|error| ImageError::document(LIST, error))?;
    if entries.len() > staging.limits.index_entries {
        let what = format!("the number of images in {LIST}");
        return Err(ImageError::TooMuch { what, most: staging.limits.index_entries as u64 });
    }
    Ok(entries)
}

fn parse(entry: &Entry) -> Result<Vec<Reference>, ImageError> {
    let tags = entry.repo_tags.iter().flatten();
    tags.map(|tag| tag.parse().map_err(ImageError::from)).collect()
}

fn take(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    path: &str,
    what: &str,
) -> Result<(Digest, u64), ImageError> {
    let shown: String = path.chars().take(200).collect();
    plain(path.as_bytes(), staging.limits.path_bytes).map_err(|reason| {
        ImageError::document(LIST, format!("the path '{shown}' of {what} {reason}"))
    })?;
    let (found, size) = files
        .take(staging, path)?
        .ok_or_else(|| ImageError::Missing { what: format!("{what} ('{shown}')") })?;
    match called(path) {
        Some(wanted) if wanted != found => {
            Err(ImageError::WrongDigest { what: what.to_owned(), wanted, found })
        }
        _ => Ok((found, size)),
    }
}

/// Configurations, and in newer archives layers too, are called by their digests.
fn called(path: &str) -> Option<Digest> {
    let name = path.rsplit('/').next()?;
    format!("sha256:{}", name.strip_suffix(".json").unwrap_or(name)).parse().ok()
}
