//! The OCI image layout: an index of manifests, and blobs named by their digests.

use std::collections::BTreeMap;

use super::{ImageFiles, StagedImage};
use crate::documents::{Descriptor, Document, Manifest, select_platform};
use crate::store::Staging;
use crate::{Digest, ImageError, Limits, Reference};

pub(super) const INDEX: &str = "index.json";

/// The annotation with the full name of an image, written by containerd and Docker.
const FULL_NAME: &str = "io.containerd.image.name";
/// The annotation of the OCI specification; often only a tag.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Stages the image for this platform of each name.
pub(super) fn find(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    index: &Digest,
) -> Result<Vec<StagedImage>, ImageError> {
    let bytes = staging.document(index, INDEX)?;
    let Document::Index(manifests) = Document::parse(&bytes, staging.limits)? else {
        return Err(ImageError::document(INDEX, "it is a manifest"));
    };
    let mut by_name: BTreeMap<Option<String>, Vec<Descriptor>> = BTreeMap::new();
    for descriptor in manifests {
        by_name.entry(name(&descriptor)).or_default().push(descriptor);
    }
    let mut by_manifest: BTreeMap<Digest, Vec<Reference>> = BTreeMap::new();
    for (name, descriptors) in by_name {
        let manifest = stage_image(files, staging, select_platform(&descriptors)?, 1)?;
        let names = by_manifest.entry(manifest).or_default();
        names.extend(name.and_then(|name| parse_full_name(&name)));
    }
    let found = by_manifest.into_iter().map(|(manifest, names)| StagedImage { manifest, names });
    Ok(found.collect())
}

fn name(descriptor: &Descriptor) -> Option<String> {
    let annotations = descriptor.annotations.as_ref()?;
    annotations.get(FULL_NAME).or_else(|| annotations.get(NAME)).cloned()
}

/// Parses a name, unless it is only a tag.
fn parse_full_name(name: &str) -> Option<Reference> {
    name.contains([':', '/']).then(|| name.parse().ok()).flatten()
}

/// Stages the manifest for this platform and its blobs, and returns the manifest's digest.
fn stage_image(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    descriptor: &Descriptor,
    depth: usize,
) -> Result<Digest, ImageError> {
    stage_blob(files, staging, descriptor, "the manifest", staging.limits.document_bytes)?;
    let bytes = staging.document(&descriptor.digest, "the manifest")?;
    match Document::parse(&bytes, staging.limits)? {
        Document::Index(_) if depth >= staging.limits.index_depth => Err(too_deep(staging.limits)),
        Document::Index(manifests) => {
            stage_image(files, staging, select_platform(&manifests)?, depth + 1)
        }
        Document::Manifest(manifest) => {
            stage_blobs(files, staging, &manifest)?;
            Ok(descriptor.digest.clone())
        }
    }
}

pub(crate) fn too_deep(limits: &Limits) -> ImageError {
    let limit = limits.index_depth as u64;
    ImageError::LimitExceeded { what: "the nesting depth of indexes".to_owned(), limit }
}

fn stage_blobs(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    manifest: &Manifest,
) -> Result<(), ImageError> {
    let limit = staging.limits.document_bytes;
    stage_blob(files, staging, &manifest.config, "the configuration", limit)?;
    for (number, layer) in manifest.layers.iter().enumerate() {
        let what = format!("layer {}", number + 1);
        stage_blob(files, staging, layer, &what, staging.limits.blob_bytes)?;
    }
    Ok(())
}

/// Stages a blob, and checks its digest and size.
fn stage_blob(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
    descriptor: &Descriptor,
    what: &str,
    limit: u64,
) -> Result<(), ImageError> {
    let expected = &descriptor.digest;
    if descriptor.size > limit {
        let what = format!("the size of {what} in bytes");
        return Err(ImageError::LimitExceeded { what, limit });
    }
    let path = format!("blobs/sha256/{}", expected.digits());
    let Some((found, size)) = files.stage(staging, &path)? else {
        return Err(ImageError::Missing { what: format!("{what} ({expected})") });
    };
    if found != *expected {
        let (what, expected) = (what.to_owned(), expected.clone());
        return Err(ImageError::DigestMismatch { what, expected, found });
    }
    if size != descriptor.size {
        let reason = format!("{what} has {size} bytes, not {} as declared", descriptor.size);
        return Err(ImageError::document("manifest", reason));
    }
    Ok(())
}
