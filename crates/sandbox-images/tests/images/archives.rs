//! Builds image archives: OCI layouts and the formats of `docker save`.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sandbox_images::Digest;
use serde_json::{Value, json};

use crate::tar_writer::Tar;

/// The files of an archive by their paths, which tests modify before they pack them.
#[derive(Clone, Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

pub(crate) fn architecture() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The configuration for these uncompressed layers.
pub(crate) fn config(contents: &[Vec<u8>]) -> Value {
    let ids: Vec<String> = contents.iter().map(|content| Digest::of(content).to_string()).collect();
    json!({
        "os": "linux",
        "architecture": architecture(),
        "config": { "Env": ["PATH=/usr/bin:/bin"], "Cmd": ["sh"], "WorkingDir": "/srv" },
        "rootfs": { "type": "layers", "diff_ids": ids },
    })
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

pub(crate) fn descriptor(kind: &str, content: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": Digest::of(content).to_string(), "size": content.len() })
}

/// A manifest for a configuration and layers, compressed or not.
pub(crate) fn manifest(config: &[u8], layers: &[Vec<u8>]) -> Value {
    let layers: Vec<Value> = layers.iter().map(|layer| descriptor(LAYER, layer)).collect();
    let config = descriptor("application/vnd.oci.image.config.v1+json", config);
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers })
}

impl Files {
    pub(crate) fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.0.insert(path.to_owned(), content.into());
        self
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        self.0.remove(path).unwrap();
        self
    }

    pub(crate) fn blob(self, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        self.with(&blob_path(&content), content)
    }

    /// An OCI layout of one image with these layers, compressed or not.
    pub(crate) fn layout(name: &str, config: &Value, layers: &[Vec<u8>]) -> Self {
        let config = bytes(config);
        Self::with_manifest(name, &manifest(&config, layers), &config, layers)
    }

    /// An OCI layout with this manifest.
    pub(crate) fn with_manifest(
        name: &str,
        manifest: &Value,
        config: &[u8],
        layers: &[Vec<u8>],
    ) -> Self {
        let manifest = bytes(manifest);
        let mut files = Self::default().blob(config).blob(manifest.clone());
        for layer in layers {
            files = files.blob(layer.clone());
        }
        files.with_index(name, descriptor(MANIFEST, &manifest))
    }

    /// Adds an index of this descriptor.
    pub(crate) fn with_index(self, name: &str, mut descriptor: Value) -> Self {
        descriptor["annotations"] = json!({ "io.containerd.image.name": name });
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor] });
        self.with("index.json", bytes(&index))
            .with("oci-layout", *b"{\"imageLayoutVersion\":\"1.0.0\"}")
    }

    /// An archive in the format of old versions of `docker save`.
    pub(crate) fn docker(name: &str, layers: &[Vec<u8>]) -> Self {
        let config = bytes(&config(layers));
        let config_path = format!("{}.json", Digest::of(&config).digits());
        let mut files = Self::default().with(&config_path, config);
        let mut paths = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            let path = format!("layer-{number}/layer.tar");
            files = files.with(&path, layer.clone());
            paths.push(path);
        }
        files.with_list(&config_path, name, &paths)
    }

    /// Adds the list of images that Docker writes.
    pub(crate) fn with_list(self, config: &str, name: &str, layers: &[String]) -> Self {
        let list = json!([{ "Config": config, "RepoTags": [name], "Layers": layers }]);
        self.with("manifest.json", bytes(&list))
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        self.tar_unfinished().end()
    }

    pub(crate) fn tar_unfinished(&self) -> Tar {
        let files = self.0.iter();
        files.fold(Tar::new(), |tar, (path, content)| tar.file(path, content))
    }
}

pub(crate) fn blob_path(content: &[u8]) -> String {
    format!("blobs/sha256/{}", Digest::of(content).digits())
}

/// An archive of an image with these uncompressed layers.
pub(crate) fn image(name: &str, layers: &[Vec<u8>]) -> Vec<u8> {
    Files::layout(name, &config(layers), layers).tar()
}
