use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Platform;
use crate::{Digest, ImageError, Limits};

/// A reference to a document or a layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

/// The manifest of an image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// The two documents that a reference or an index can lead to.
#[derive(Debug)]
pub(crate) enum Document {
    /// One image.
    Manifest(Manifest),
    /// Several images, for different platforms or with different names.
    Index(Vec<Descriptor>),
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// The suffixes of all media types of layers. Other content in registries, such as signatures, has other media
/// types.
const LAYER_SUFFIXES: [&str; 5] = [".tar", ".tar.gzip", ".tar+gzip", ".tar.zstd", ".tar+zstd"];

impl Document {
    pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, ImageError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape {
            schema_version: Option<u32>,
            manifests: Option<Vec<serde_json::Value>>,
            layers: Option<Vec<serde_json::Value>>,
        }
        #[derive(Deserialize)]
        struct Index {
            manifests: Vec<Descriptor>,
        }
        let invalid = |error: serde_json::Error| ImageError::document("manifest", error);
        let shape: Shape = serde_json::from_slice(bytes).map_err(invalid)?;
        if shape.schema_version != Some(2) {
            return Err(ImageError::document("manifest", "only schema version 2 is supported"));
        }
        let exceeded = |what: &str, limit: usize| ImageError::LimitExceeded {
            what: what.to_owned(),
            limit: limit as u64,
        };
        match (shape.manifests, shape.layers) {
            // Two clients could see two different images in it (CVE-2021-41190).
            (Some(_), Some(_)) => {
                Err(ImageError::document("manifest", "it is both an index and a manifest"))
            }
            (Some(manifests), None) if manifests.len() > limits.index_entries => {
                Err(exceeded("the number of images in the index", limits.index_entries))
            }
            (None, Some(layers)) if layers.len() > limits.layers => {
                Err(exceeded("the number of layers", limits.layers))
            }
            (Some(_), None) => {
                let index: Index = serde_json::from_slice(bytes).map_err(invalid)?;
                Ok(Self::Index(index.manifests))
            }
            (None, Some(_)) => {
                let manifest: Manifest = serde_json::from_slice(bytes).map_err(invalid)?;
                manifest.check(limits)?;
                Ok(Self::Manifest(manifest))
            }
            (None, None) => {
                Err(ImageError::document("manifest", "it has neither layers nor images"))
            }
        }
    }
}

impl Manifest {
    /// Creates a manifest for an image that has none.
    pub(crate) fn create(config: &(Digest, u64), layers: &[(Digest, u64)]) -> Self {
        let describe = |media_type: &str, (digest, size): &(Digest, u64)| Descriptor {
            media_type: media_type.to_owned(),
            digest: digest.clone(),
            size: *size,
            platform: None,
            annotations: None,
        };
        Self {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            config: describe(CONFIG, config),
            layers: layers.iter().map(|layer| describe(LAYER, layer)).collect(),
        }
    }

    fn check(&self, limits: &Limits) -> Result<(), ImageError> {
        for (number, layer) in self.layers.iter().enumerate() {
            let number = number + 1;
            if !LAYER_SUFFIXES.iter().any(|suffix| layer.media_type.ends_with(suffix)) {
                let kind: String = layer.media_type.chars().take(100).collect();
                let reason =
                    format!("layer {number} has the media type '{kind}', no files to unpack");
                return Err(ImageError::document("manifest", reason));
            }
            if layer.size > limits.blob_bytes {
                let what = format!("the size of layer {number} in bytes");
                return Err(ImageError::LimitExceeded { what, limit: limits.blob_bytes });
            }
        }
        if self.config.size > limits.document_bytes {
            let what = "the size of the configuration in bytes".to_owned();
            return Err(ImageError::LimitExceeded { what, limit: limits.document_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, String> {
        Document::parse(text.as_bytes(), &Limits::default()).map_err(|error| error.to_string())
    }

    fn descriptor(kind: &str, size: u64) -> String {
        format!(r#"{{"mediaType":"{kind}","digest":"{}","size":{size}}}"#, Digest::of(b""))
    }

    #[test]
    fn a_document_is_either_a_manifest_or_an_index() {
        let both = r#"{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}"#;
        assert!(parse(both).unwrap_err().contains("both"));
        assert!(parse(r#"{"schemaVersion":2}"#).unwrap_err().contains("neither"));
        assert!(parse(r#"{"schemaVersion":1,"layers":[]}"#).unwrap_err().contains("version 2"));
        assert!(parse("{").is_err());
    }

    #[test]
    fn layers_must_have_a_known_media_type() {
        let manifest = |layer: &str| {
            let config = descriptor(CONFIG, 2);
            parse(&format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{layer}]}}"#))
        };
        for kind in [LAYER, "application/vnd.docker.image.rootfs.diff.tar.gzip"] {
            assert!(matches!(manifest(&descriptor(kind, 1)), Ok(Document::Manifest(_))), "{kind}");
        }
        let signature = descriptor("application/vnd.in-toto+json", 1);
        assert!(manifest(&signature).unwrap_err().contains("no files to unpack"));
        assert!(manifest(&descriptor(LAYER, 1 << 50)).unwrap_err().contains("size of layer 1"));
        let negative = descriptor(LAYER, 1).replace(":1}", ":-1}");
        assert!(manifest(&negative).is_err());
    }

    #[test]
    fn a_created_manifest_reads_back() {
        let layers = [(Digest::of(b"a"), 1), (Digest::of(b"b"), 2)];
        let created = Manifest::create(&(Digest::of(b"{}"), 2), &layers);
        let text = serde_json::to_string(&created).unwrap();
        let Ok(Document::Manifest(read)) = parse(&text) else { panic!("{text}") };
        assert_eq!(read.layers[1].digest, layers[1].0);
    }
}
