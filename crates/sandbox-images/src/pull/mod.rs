//! Pulls images from registries by the OCI distribution protocol (version 2 of Docker's).
//!
//! It uses a plain HTTP client instead of a registry client. The existing one, `oci-client`, reads manifests, tokens
//! and error bodies into memory whatever their size, follows redirects from https to http and requests tokens from any
//! URL; limits, retries and resumed downloads would have to be added on top of it anyway.
//!
//! Registries are untrusted. Everything requested by digest is verified. Sizes must match the manifest and are limited.
//! A registry that stops sending is given up after a timeout.

mod blob;
mod registry;
mod token;

use std::time::Duration;

use crate::documents::{Document, Manifest, select_platform};
use crate::import::too_deep;
use crate::store::Staging;
use crate::{Digest, ImageError, ImageInfo, Limits, Progress, Reference, Store, Version};

use registry::Registry;

/// Options of a pull.
#[derive(Clone, Debug)]
pub struct PullOptions {
    /// The registries to connect to without TLS.
    pub plain_http: PlainHttp,
    /// The timeout of each read from the registry.
    pub read_timeout: Duration,
    /// The timeout of the whole pull.
    pub timeout: Duration,
    /// The maximum number of attempts to download a blob.
    pub max_attempts: u32,
    /// The delay before the second attempt. It doubles with each further one.
    pub retry_delay: Duration,
}

/// The registries to connect to without TLS. Without it, an attacker on the network can read what is pulled, and
/// substitute the image of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainHttp {
    /// Those on this host.
    Loopback,
    /// All registries.
    Everywhere,
    /// No registry.
    Never,
}

impl Default for PullOptions {
    fn default() -> Self {
        Self {
            plain_http: PlainHttp::Loopback,
            read_timeout: Duration::from_secs(30),
            timeout: Duration::from_hours(2),
            max_attempts: 5,
            retry_delay: Duration::from_millis(500),
        }
    }
}

impl Store {
    /// Pulls an image from its registry, completely or not at all. An image that has the name already loses it, and
    /// stays in the store until [`Store::prune`].
    pub fn pull(
        &self,
        reference: &Reference,
        options: &PullOptions,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<ImageInfo, ImageError> {
        let pull = || {
            let mut staging = self.stage()?;
            let mut registry = Registry::new(reference, options)?;
            let digest = fetch(&mut registry, &mut staging, reference, progress)?;
            staging.unpack(&digest, progress)?;
            staging.publish(&[(reference.clone(), digest)])
        };
        // The blocking client contains a runtime, which must not run on a thread of the caller's async runtime.
        let pulled = std::thread::scope(|scope| scope.spawn(pull).join());
        let pulled = pulled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        pulled.map_err(|error| error.about(reference))?;
        self.find(reference)
    }
}

/// Stages the image for this platform, and returns the digest of its manifest.
fn fetch(
    registry: &mut Registry<'_>,
    staging: &mut Staging<'_>,
    reference: &Reference,
    progress: &mut dyn FnMut(Progress),
) -> Result<Digest, ImageError> {
    let bytes = registry.manifest(reference.version(), staging.limits)?;
    let (bytes, manifest) = resolve_manifest(registry, bytes, staging.limits)?;
    let digest = staging.add_bytes(&bytes)?;
    registry.blob(staging, &manifest.config, "the configuration", progress)?;
    for (number, layer) in manifest.layers.iter().enumerate() {
        registry.blob(staging, layer, &format!("layer {}", number + 1), progress)?;
    }
    Ok(digest)
}

/// Follows indexes to the manifest for this platform.
fn resolve_manifest(
    registry: &mut Registry<'_>,
    mut bytes: Vec<u8>,
    limits: &Limits,
) -> Result<(Vec<u8>, Manifest), ImageError> {
    for _ in 0..=limits.index_depth {
        match Document::parse(&bytes, limits)? {
            Document::Manifest(manifest) => return Ok((bytes, manifest)),
            Document::Index(manifests) => {
                let selected = select_platform(&manifests)?;
                bytes = registry.manifest(&Version::Digest(selected.digest.clone()), limits)?;
            }
        }
    }
    Err(too_deep(limits))
}
