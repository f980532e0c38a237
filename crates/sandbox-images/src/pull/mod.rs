//! Images from registries, by the OCI distribution protocol (version 2 of Docker's).
//!
//! It is written on an HTTP client and not on a client for registries. The one that there is, `oci-client`, reads
//! manifests, tokens and refusals into memory whatever their size, follows redirects from https to plain http and
//! asks for tokens wherever it is sent; and what it does beyond that we would have to do again: bounds, retries,
//! continuing where a transfer broke off.
//!
//! Nothing a registry says is believed. What was asked for by digest has that digest or is not taken; sizes are those
//! that the manifest says, and these are bounded; a registry that stops sending is not waited for.

mod blob;
mod registry;
mod token;

use std::time::Duration;

use crate::documents::{Document, Manifest, choose};
use crate::import::too_deep;
use crate::store::Staging;
use crate::{Digest, ImageError, Kept, Limits, Progress, Reference, Store, Version};

use registry::Registry;

/// How to pull.
#[derive(Clone, Debug)]
pub struct PullOptions {
    /// With which registries to speak without TLS.
    pub plain_http: PlainHttp,
    /// How long to wait for the next byte.
    pub stall: Duration,
    /// How long all of it may take.
    pub patience: Duration,
    /// How often a layer that broke off is tried.
    pub tries: u32,
    /// How long to wait before the second try; before each further one twice as long.
    pub pause: Duration,
}

/// With which registries to speak without TLS. Whoever is on the way can read what is pulled, and give something
/// else for a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// With those on this machine.
    Loopback,
    /// With all.
    Everywhere,
    /// With none.
    Never,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            plain_http: PlainHttp::Loopback,
            stall: Duration::from_secs(30),
            patience: Duration::from_hours(2),
            tries: 5,
            pause: Duration::from_millis(500),
        }
    }
}

impl Store {
    /// Takes an image from its registry, whole or not at all. One that has the name already is replaced, and stays
    /// in the store until [`Store::prune`].
    pub fn pull(
        &self,
        reference: &Reference,
        options: &PullOptions,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Kept, ImageError> {
        let pull = || {
            let mut staging = self.stage()?;
            let mut registry = Registry::new(reference, options)?;
            let digest = fetch(&mut registry, &mut staging, reference, progress)?;
            staging.prepare(&digest, progress)?;
            staging.publish(&[(reference.clone(), digest)])
        };
        // The client has a runtime inside, which may not be used on a thread of the caller's own runtime.
        let pulled = std::thread::scope(|scope| scope.spawn(pull).join());
        let pulled = pulled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        pulled.map_err(|error| error.about(reference))?;
        self.find(reference)
    }
}

/// Fetches the image for this machine, and says what the digest of its manifest is.
fn fetch(
    registry: &mut Registry<'_>,
    staging: &mut Staging<'_>,
    reference: &Reference,
    progress: &mut dyn FnMut(Progress),
) -> Result<Digest, ImageError> {
    let bytes = registry.manifest(reference.version(), staging.limits)?;
    let (bytes, manifest) = descend(registry, bytes, staging.limits)?;
    let digest = staging.keep_bytes(&bytes)?;
    registry.blob(staging, &manifest.config, "its configuration", progress)?;
    for (number, layer) in manifest.layers.iter().enumerate() {
        registry.blob(staging, layer, &format!("layer {}", number + 1), progress)?;
    }
    Ok(digest)
}

fn descend(
    registry: &mut Registry<'_>,
    mut bytes: Vec<u8>,
    limits: &Limits,
) -> Result<(Vec<u8>, Manifest), ImageError> {
    for _ in 0..=limits.index_depth {
        match Document::parse(&bytes, limits)? {
            Document::Manifest(manifest) => return Ok((bytes, manifest)),
            Document::Index(manifests) => {
                let chosen = choose(&manifests)?;
                bytes = registry.manifest(&Version::Digest(chosen.digest.clone()), limits)?;
            }
        }
    }
    Err(too_deep(limits))
}
