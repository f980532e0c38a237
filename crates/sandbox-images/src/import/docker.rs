//! The legacy format of `docker save`: a list of images with the paths of their files.

use serde::Deserialize;

use super::{ImageFiles, StagedImage};
use crate::archive::parse_path;
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
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    list: &Digest,
) -> Result<Vec<StagedImage>, ImageError> {
    let mut found = Vec::new();
    for entry in entries(staging, list)? {
        if entry.layers.len() > staging.limits.layers {
            let what = "the number of layers".to_owned();
            return Err(ImageError::LimitExceeded { what, limit: staging.limits.layers as u64 });
        }
        let config = stage(files, staging, &entry.config, "the configuration")?;
        let mut layers = Vec::new();
        for path in &entry.layers {
            let what = format!("layer {}", layers.len() + 1);
            layers.push(stage(files, staging, path, &what)?);
        }
        let manifest = Manifest::create(&config, &layers);
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|error| ImageError::document("manifest", error))?;
        let manifest = staging.add_bytes(&manifest)?;
        found.push(StagedImage { manifest, names: parse_names(&entry)? });
    }
    Ok(found)
}

/// Returns the names of all images in the list.
pub(super) fn names(staging: &Staging<'_>, list: &Digest) -> Result<Vec<Reference>, ImageError> {
    let mut names = Vec::new();
    for entry in entries(staging, list)? {
        names.extend(parse_names(&entry)?);
    }
    Ok(names)
}

fn entries(staging: &Staging<'_>, list: &Digest) -> Result<Vec<Entry>, ImageError> {
    let bytes = staging.document(list, LIST)?;
    let entries: Vec<Entry> =
        serde_json::from_slice(&bytes).map_err(|error| ImageError::document(LIST, error))?;
    if entries.len() > staging.limits.index_entries {
        let what = format!("the number of images in {LIST}");
        return Err(ImageError::LimitExceeded { what, limit: staging.limits.index_entries as u64 });
    }
    Ok(entries)
}

fn parse_names(entry: &Entry) -> Result<Vec<Reference>, ImageError> {
    let tags = entry.repo_tags.iter().flatten();
    tags.map(|tag| tag.parse().map_err(ImageError::from)).collect()
}

fn stage(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    path: &str,
    what: &str,
) -> Result<(Digest, u64), ImageError> {
    let shown: String = path.chars().take(200).collect();
    parse_path(path.as_bytes(), staging.limits.path_bytes).map_err(|reason| {
        ImageError::document(LIST, format!("the path '{shown}' of {what} {reason}"))
    })?;
    let (found, size) = files
        .stage(staging, path)?
        .ok_or_else(|| ImageError::Missing { what: format!("{what} ('{shown}')") })?;
    match digest_in_name(path) {
        Some(expected) if expected != found => {
            Err(ImageError::DigestMismatch { what: what.to_owned(), expected, found })
        }
        _ => Ok((found, size)),
    }
}

/// Parses a digest in a file name: configurations, and in newer archives layers too, are named by their digests.
fn digest_in_name(path: &str) -> Option<Digest> {
    let name = path.rsplit('/').next()?;
    format!("sha256:{}", name.strip_suffix(".json").unwrap_or(name)).parse().ok()
}
