//! The OCI image layout: an index that leads to manifests, and blobs that are called by their digests.

use std::collections::BTreeMap;

use super::{Files, Found};
use crate::documents::{Descriptor, Document, Manifest, choose};
use crate::store::Staging;
use crate::{Digest, ImageError, Limits, Reference};

pub(super) const INDEX: &str = "index.json";

/// The whole name of an image, as containerd and Docker write it.
const FULL_NAME: &str = "io.containerd.image.name";
/// By the standard; often only a tag.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Finds the image for this machine behind each name.
pub(super) fn find(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    index: &Digest,
) -> Result<Vec<Found>, ImageError> {
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
        let manifest = descend(files, staging, choose(&descriptors)?, 1)?;
        let names = by_manifest.entry(manifest).or_default();
        names.extend(name.and_then(|name| whole(&name)));
    }
    let found = by_manifest.into_iter().map(|(manifest, names)| Found { manifest, names });
    Ok(found.collect())
}

fn name(descriptor: &Descriptor) -> Option<String> {
    let annotations = descriptor.annotations.as_ref()?;
    annotations.get(FULL_NAME).or_else(|| annotations.get(NAME)).cloned()
}

/// A tag alone is no name for an image.
fn whole(name: &str) -> Option<Reference> {
    name.contains([':', '/']).then(|| name.parse().ok()).flatten()
}

/// From a descriptor to the manifest for this machine, with everything that the manifest needs.
fn descend(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    descriptor: &Descriptor,
    depth: usize,
) -> Result<Digest, ImageError> {
    take(files, staging, descriptor, "its manifest", staging.limits.document_bytes)?;
    let bytes = staging.document(&descriptor.digest, "its manifest")?;
    match Document::parse(&bytes, staging.limits)? {
        Document::Index(_) if depth >= staging.limits.index_depth => Err(too_deep(staging.limits)),
        Document::Index(manifests) => descend(files, staging, choose(&manifests)?, depth + 1),
        Document::Manifest(manifest) => {
            take_parts(files, staging, &manifest)?;
            Ok(descriptor.digest.clone())
        }
    }
}

pub(crate) fn too_deep(limits: &Limits) -> ImageError {
    let most = limits.index_depth as u64;
    ImageError::TooMuch { what: "the number of indexes in one another".to_owned(), most }
}

fn take_parts(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    manifest: &Manifest,
) -> Result<(), ImageError> {
    let most = staging.limits.document_bytes;
    take(files, staging, &manifest.config, "its configuration", most)?;
    for (number, layer) in manifest.layers.iter().enumerate() {
        let what = format!("layer {}", number + 1);
        take(files, staging, layer, &what, staging.limits.blob_bytes)?;
    }
    Ok(())
}

/// Stages a blob, and makes sure that it is what it is called.
fn take(
    files: &mut dyn Files,
    staging: &mut Staging<'_>,
    descriptor: &Descriptor,
    what: &str,
    most: u64,
) -> Result<(), ImageError> {
    let wanted = &descriptor.digest;
    if descriptor.size > most {
        return Err(ImageError::TooMuch { what: format!("the size of {what} in bytes"), most });
    }
    let path = format!("blobs/sha256/{}", wanted.digits());
    let Some((found, size)) = files.take(staging, &path)? else {
        return Err(ImageError::Missing { what: format!("{what} ({wanted})") });
    };
    if found != *wanted {
        let (what, wanted) = (what.to_owned(), wanted.clone());
        return Err(ImageError::WrongDigest { what, wanted, found });
    }
    if size != descriptor.size {
        let reason = format!("{what} has {size} bytes, and is said to have {}", descriptor.size);
        return Err(ImageError::document("manifest", reason));
    }
    Ok(())
}
