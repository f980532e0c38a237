use serde_json::{Value, json};

use super::{check_all, rejected};
use crate::archives::{
    Files, INDEX, LAYER, MANIFEST, architecture, blob_path, bytes, config, descriptor, image,
    manifest,
};
use crate::tar_writer::{FIFO, Head, SYMLINK, Tar};

fn good() -> Vec<u8> {
    Tar::new().file("a", "x").end()
}

fn layout() -> Files {
    Files::layout("x:1", &config(&[good()]), &[good()])
}

/// A layout with a modified manifest.
fn with_manifest(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let config = bytes(&config(&[good()]));
    let mut manifest = manifest(&config, &[good()]);
    change(&mut manifest);
    Files::with_manifest("x:1", &manifest, &config, &[good()]).tar()
}

fn with_config(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut config = config(&[good()]);
    change(&mut config);
    Files::layout("x:1", &config, &[good()]).tar()
}

fn listed(layer: &str) -> Vec<u8> {
    let files = Files::docker("x:1", &[good()]);
    let config = files.0.keys().find(|path| path.len() == 64 + ".json".len()).unwrap().clone();
    files.with_list(&config, "x:1", &[layer.to_owned()]).tar()
}

/// A layout with nested indexes.
fn nested(depth: usize) -> Vec<u8> {
    let mut files = layout();
    let config = bytes(&config(&[good()]));
    let mut inner = descriptor(MANIFEST, &bytes(&manifest(&config, &[good()])));
    for _ in 0..depth {
        let index = bytes(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [inner] }));
        inner = descriptor(INDEX, &index);
        files = files.blob(index);
    }
    files.with_index("x:1", inner).tar()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table of independent rows")]
fn inconsistent_documents_are_rejected() {
    let manifest_path = blob_path(&bytes(&manifest(&bytes(&config(&[good()])), &[good()])));
    let config_path = blob_path(&bytes(&config(&[good()])));
    let other = Tar::new().file("a", "y").end();
    let itself = json!({ "schemaVersion": 2, "manifests": [descriptor(INDEX, b"self")] });
    check_all(|_| {
        vec![
            rejected(
                "layer with other content",
                layout().with(&blob_path(&good()), other.clone()).tar(),
                "digest mismatch of layer 1",
            ),
            rejected(
                "manifest with other content",
                layout().with(&manifest_path, *b"{}").tar(),
                "digest mismatch of the manifest",
            ),
            rejected(
                "configuration with other content",
                layout().with(&config_path, *b"{}").tar(),
                "digest mismatch of the configuration",
            ),
            rejected(
                "configuration that was written for another layer",
                Files::layout("x:1", &config(std::slice::from_ref(&other)), &[good()]).tar(),
                "digest mismatch of the uncompressed layer",
            ),
            rejected(
                "configuration of Docker under another digest",
                {
                    let files = Files::docker("x:1", &[good()]);
                    let wrong = format!("{}.json", "a".repeat(64));
                    let files = files.with(&wrong, bytes(&config(&[good()])));
                    files.with_list(&wrong, "x:1", &["layer-0/layer.tar".to_owned()]).tar()
                },
                "digest mismatch of the configuration",
            ),
            rejected(
                "layer of Docker with other content",
                Files::docker("x:1", &[good()]).with("layer-0/layer.tar", other.clone()).tar(),
                "digest mismatch of the uncompressed layer",
            ),
            rejected(
                "no configuration",
                layout().without(&config_path).tar(),
                "configuration (sha256:",
            ),
            rejected("no layer", layout().without(&blob_path(&good())).tar(), "layer 1 (sha256:"),
            rejected(
                "no manifest",
                layout().without(&manifest_path).tar(),
                "the manifest (sha256:",
            ),
            rejected(
                "no layer of Docker",
                listed("layer-7/layer.tar"),
                "layer 1 ('layer-7/layer.tar')",
            ),
            rejected("layer of Docker outside", listed("../../etc/passwd"), "has '..' in its path"),
            rejected("layer of Docker at the top", listed("/etc/passwd"), "has an absolute path"),
            rejected(
                "layer of Docker that is a link to outside",
                Files::docker("x:1", &[good()])
                    .without("layer-0/layer.tar")
                    .tar_unfinished()
                    .symlink("layer-0/layer.tar", "../../etc/passwd")
                    .end(),
                "is a link that leads out of the archive",
            ),
            rejected(
                "layer of Docker that is a link to itself",
                Files::docker("x:1", &[good()])
                    .without("layer-0/layer.tar")
                    .tar_unfinished()
                    .symlink("layer-0/layer.tar", "layer.tar")
                    .end(),
                "layer 1 ('layer-0/layer.tar') is missing",
            ),
            rejected(
                "digest that is a path",
                with_manifest(|manifest| manifest["layers"][0]["digest"] = "sha256:../../x".into()),
                "invalid digest 'sha256:../../x'",
            ),
            rejected(
                "digest of another algorithm",
                with_manifest(|manifest| manifest["config"]["digest"] = "md5:abc".into()),
                "invalid digest 'md5:abc'",
            ),
            rejected(
                "another size",
                with_manifest(|manifest| manifest["layers"][0]["size"] = 7.into()),
                "not 7 as declared",
            ),
            rejected(
                "size that is negative",
                with_manifest(|manifest| manifest["layers"][0]["size"] = (-7).into()),
                "invalid manifest",
            ),
            rejected(
                "manifest and index at once",
                with_manifest(|manifest| manifest["manifests"] = json!([])),
                "it is both an index and a manifest",
            ),
            rejected(
                "layer without files",
                with_manifest(|manifest| manifest["layers"][0]["mediaType"] = "text/html".into()),
                "no files to unpack",
            ),
            rejected(
                "image for another machine",
                with_config(|config| config["architecture"] = "vax".into()),
                "only for linux/vax",
            ),
            rejected(
                "image for another system",
                with_config(|config| config["os"] = "windows".into()),
                "only for windows/",
            ),
            rejected(
                "configuration for another number of layers",
                with_config(|config| config["rootfs"]["diff_ids"] = json!([])),
                "it describes 0 layers",
            ),
            rejected(
                "index for other machines",
                {
                    let mut entry = descriptor(MANIFEST, b"");
                    entry["platform"] = json!({ "os": "linux", "architecture": "vax" });
                    layout().with_index("x:1", entry).tar()
                },
                "only for linux/vax",
            ),
            rejected("indexes in indexes in indexes", nested(3), "the nesting depth of indexes"),
            rejected(
                "index that names itself",
                layout()
                    .with(&blob_path(b"self"), bytes(&itself))
                    .with_index("x:1", {
                        let mut entry = descriptor(INDEX, b"self");
                        entry["size"] = bytes(&itself).len().into();
                        entry
                    })
                    .tar(),
                "digest mismatch of the manifest",
            ),
            rejected(
                "name with ..",
                Files::docker("../../etc/passwd:1", &[good()]).tar(),
                "invalid image name",
            ),
            rejected("no name at all", image("latest", &[good()]), "does not name the image"),
            rejected(
                "file of the archive outside of it",
                layout().tar_unfinished().file("../x", "").end(),
                "'../x' has '..' in its path",
            ),
            rejected(
                "file that occurs twice",
                layout().tar_unfinished().file("index.json", "{}").end(),
                "'index.json' occurs twice",
            ),
            rejected(
                "pipe in the archive",
                layout().tar_unfinished().entry(Head::new(FIFO, b"p", 0), b"").end(),
                "'p' is a pipe",
            ),
            rejected(
                "index that is a link to outside",
                Tar::new()
                    .entry(Head::new(SYMLINK, b"index.json", 0).target(b"/etc/passwd"), b"")
                    .end(),
                "is a link that leads out of the archive",
            ),
            rejected("index that is not JSON", layout().with("index.json", *b"{").tar(), "EOF"),
            rejected(
                "list that is not JSON",
                Files::default().with("manifest.json", *b"[{}]").tar(),
                "Config",
            ),
        ]
    });
}

#[test]
fn the_same_documents_without_the_inconsistency_are_accepted() {
    for archive in [
        layout().tar(),
        nested(2),
        listed("layer-0/layer.tar"),
        with_manifest(|manifest| manifest["layers"][0]["mediaType"] = LAYER.into()),
        with_config(|config| config["architecture"] = architecture().into()),
    ] {
        crate::harness::Harness::new().import(&archive).unwrap();
    }
}
