use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Platform;
use crate::{Digest, ImageError, Limits};

/// What a document says about another one, or about a layer.
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

/// What an image is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// What stands where a manifest is asked for.
#[derive(Debug)]
pub(crate) enum Document {
    /// One image.
    Manifest(Manifest),
    /// Several, for different machines or with different names.
    Index(Vec<Descriptor>),
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// How the media types of layers end, whoever made them. Things that are kept in registries and are no
/// files to unpack, such as signatures, have others.
const LAYERS_END: [&str; 5] = [".tar", ".tar.gzip", ".tar+gzip", ".tar.zstd", ".tar+zstd"];

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
        let wrong = |error: serde_json::Error| ImageError::document("manifest", error);
        let shape: Shape = serde_json::from_slice(bytes).map_err(wrong)?;
        if shape.schema_version != Some(2) {
            return Err(ImageError::document("manifest", "only schema version 2 is read"));
        }
        let most = |what: &str, most: usize| ImageError::TooMuch {
            what: what.to_owned(),
            most: most as u64,
        };
        match (shape.manifests, shape.layers) {
            // Two readers could see two different images in it (CVE-2021-41190).
            (Some(_), Some(_)) => {
                Err(ImageError::document("manifest", "it is an index and a manifest at once"))
            }
            (Some(manifests), None) if manifests.len() > limits.index_entries => {
                Err(most("the number of images in its index", limits.index_entries))
            }
            (None, Some(layers)) if layers.len() > limits.layers => {
                Err(most("the number of its layers", limits.layers))
            }
            (Some(_), None) => {
                let index: Index = serde_json::from_slice(bytes).map_err(wrong)?;
                Ok(Self::Index(index.manifests))
            }
            (None, Some(_)) => {
                let manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
                manifest.check(limits)?;
                Ok(Self::Manifest(manifest))
            }
            (None, None) => {
                Err(ImageError::document("manifest", "it names neither layers nor images"))
            }
        }
    }
}

impl Manifest {
    /// One for an image that came without.
    pub(crate) fn made_for(config: &(Digest, u64), layers: &[(Digest, u64)]) -> Self {
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
            if !LAYERS_END.iter().any(|end| layer.media_type.ends_with(end)) {
                let kind: String = layer.media_type.chars().take(100).collect();
                let reason = format!("layer {number} is of the kind '{kind}', no files to unpack");
                return Err(ImageError::document("manifest", reason));
            }
            if layer.size > limits.blob_bytes {
                let what = format!("the size of layer {number} in bytes");
                return Err(ImageError::TooMuch { what, most: limits.blob_bytes });
            }
        }
        if self.config.size > limits.document_bytes {
            let what = "the size of its configuration in bytes".to_owned();
            return Err(ImageError::TooMuch { what, most: limits.document_bytes });
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
    fn a_document_is_one_thing_only() {
        let both = r#"{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}"#;
        assert!(parse(both).unwrap_err().contains("at once"));
        assert!(parse(r#"{"schemaVersion":2}"#).unwrap_err().contains("neither"));
        assert!(parse(r#"{"schemaVersion":1,"layers":[]}"#).unwrap_err().contains("version 2"));
        assert!(parse("{").is_err());
    }

    #[test]
    fn a_manifest_is_read_and_layers_of_other_kinds_are_not() {
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
    fn what_is_made_reads_back() {
        let layers = [(Digest::of(b"a"), 1), (Digest::of(b"b"), 2)];
        let made = Manifest::made_for(&(Digest::of(b"{}"), 2), &layers);
        let text = serde_json::to_string(&made).unwrap();
        let Ok(Document::Manifest(read)) = parse(&text) else { panic!("{text}") };
        assert_eq!(read.layers[1].digest, layers[1].0);
    }
}
