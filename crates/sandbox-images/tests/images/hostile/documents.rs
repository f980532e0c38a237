use serde_json::{Value, json};

use super::{refused, try_all};
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

/// A layout whose manifest was changed.
fn with_manifest(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let config = bytes(&config(&[good()]));
    let mut manifest = manifest(&config, &[good()]);
    change(&mut manifest);
    Files::around("x:1", &manifest, &config, &[good()]).tar()
}

fn with_config(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut config = config(&[good()]);
    change(&mut config);
    Files::layout("x:1", &config, &[good()]).tar()
}

fn listed(layer: &str) -> Vec<u8> {
    let files = Files::docker("x:1", &[good()]);
    let config = files.0.keys().find(|path| path.len() == 64 + ".json".len()).unwrap().clone();
    files.listed(&config, "x:1", &[layer.to_owned()]).tar()
}

/// Indexes that lead to one another, so many of them.
fn nested(depth: usize) -> Vec<u8> {
    let mut files = layout();
    let config = bytes(&config(&[good()]));
    let mut inner = descriptor(MANIFEST, &bytes(&manifest(&config, &[good()])));
    for _ in 0..depth {
        let index = bytes(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [inner] }));
        inner = descriptor(INDEX, &index);
        files = files.blob(index);
    }
    files.indexed("x:1", inner).tar()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table, each row by itself")]
fn documents_that_lie_are_refused() {
    let manifest_path = blob_path(&bytes(&manifest(&bytes(&config(&[good()])), &[good()])));
    let config_path = blob_path(&bytes(&config(&[good()])));
    let other = Tar::new().file("a", "y").end();
    let itself = json!({ "schemaVersion": 2, "manifests": [descriptor(INDEX, b"self")] });
    try_all(|_| {
        vec![
            refused(
                "layer with other content",
                layout().with(&blob_path(&good()), other.clone()).tar(),
                "layer 1 is not what it should be",
            ),
            refused(
                "manifest with other content",
                layout().with(&manifest_path, *b"{}").tar(),
                "its manifest is not what it should be",
            ),
            refused(
                "configuration with other content",
                layout().with(&config_path, *b"{}").tar(),
                "its configuration is not what it should be",
            ),
            refused(
                "configuration that was written for another layer",
                Files::layout("x:1", &config(std::slice::from_ref(&other)), &[good()]).tar(),
                "and the configuration says",
            ),
            refused(
                "configuration of Docker under another digest",
                {
                    let files = Files::docker("x:1", &[good()]);
                    let wrong = format!("{}.json", "a".repeat(64));
                    let files = files.with(&wrong, bytes(&config(&[good()])));
                    files.listed(&wrong, "x:1", &["layer-0/layer.tar".to_owned()]).tar()
                },
                "its configuration is not what it should be",
            ),
            refused(
                "layer of Docker with other content",
                Files::docker("x:1", &[good()]).with("layer-0/layer.tar", other.clone()).tar(),
                "and the configuration says",
            ),
            refused(
                "no configuration",
                layout().without(&config_path).tar(),
                "configuration (sha256:",
            ),
            refused("no layer", layout().without(&blob_path(&good())).tar(), "layer 1 (sha256:"),
            refused("no manifest", layout().without(&manifest_path).tar(), "its manifest (sha256:"),
            refused(
                "no layer of Docker",
                listed("layer-7/layer.tar"),
                "layer 1 ('layer-7/layer.tar')",
            ),
            refused("layer of Docker outside", listed("../../etc/passwd"), "has '..' in its path"),
            refused("layer of Docker at the top", listed("/etc/passwd"), "has an absolute path"),
            refused(
                "layer of Docker that is a link to outside",
                Files::docker("x:1", &[good()])
                    .without("layer-0/layer.tar")
                    .tar_unfinished()
                    .symlink("layer-0/layer.tar", "../../etc/passwd")
                    .end(),
                "is a link that leads out of it",
            ),
            refused(
                "layer of Docker that is a link to itself",
                Files::docker("x:1", &[good()])
                    .without("layer-0/layer.tar")
                    .tar_unfinished()
                    .symlink("layer-0/layer.tar", "layer.tar")
                    .end(),
                "layer 1 ('layer-0/layer.tar') is missing",
            ),
            refused(
                "digest that is a path",
                with_manifest(|manifest| manifest["layers"][0]["digest"] = "sha256:../../x".into()),
                "'sha256:../../x' is no digest",
            ),
            refused(
                "digest of another algorithm",
                with_manifest(|manifest| manifest["config"]["digest"] = "md5:abc".into()),
                "'md5:abc' is no digest",
            ),
            refused(
                "another size",
                with_manifest(|manifest| manifest["layers"][0]["size"] = 7.into()),
                "is said to have 7",
            ),
            refused(
                "size that is negative",
                with_manifest(|manifest| manifest["layers"][0]["size"] = (-7).into()),
                "its manifest cannot be used",
            ),
            refused(
                "manifest and index at once",
                with_manifest(|manifest| manifest["manifests"] = json!([])),
                "it is an index and a manifest at once",
            ),
            refused(
                "layer that is no files",
                with_manifest(|manifest| manifest["layers"][0]["mediaType"] = "text/html".into()),
                "no files to unpack",
            ),
            refused(
                "image for another machine",
                with_config(|config| config["architecture"] = "vax".into()),
                "only for linux/vax",
            ),
            refused(
                "image for another system",
                with_config(|config| config["os"] = "windows".into()),
                "only for windows/",
            ),
            refused(
                "configuration for another number of layers",
                with_config(|config| config["rootfs"]["diff_ids"] = json!([])),
                "it is about 0 layers",
            ),
            refused(
                "index for other machines",
                {
                    let mut entry = descriptor(MANIFEST, b"");
                    entry["platform"] = json!({ "os": "linux", "architecture": "vax" });
                    layout().indexed("x:1", entry).tar()
                },
                "only for linux/vax",
            ),
            refused(
                "indexes in indexes in indexes",
                nested(3),
                "the number of indexes in one another",
            ),
            refused(
                "index that names itself",
                layout()
                    .with(&blob_path(b"self"), bytes(&itself))
                    .indexed("x:1", {
                        let mut entry = descriptor(INDEX, b"self");
                        entry["size"] = bytes(&itself).len().into();
                        entry
                    })
                    .tar(),
                "its manifest is not what it should be",
            ),
            refused(
                "name with ..",
                Files::docker("../../etc/passwd:1", &[good()]).tar(),
                "is no name of an image",
            ),
            refused(
                "no name at all",
                image("latest", &[good()]),
                "it does not say what it is called",
            ),
            refused(
                "file of the archive outside of it",
                layout().tar_unfinished().file("../x", "").end(),
                "'../x' has '..' in its path",
            ),
            refused(
                "file that is there twice",
                layout().tar_unfinished().file("index.json", "{}").end(),
                "'index.json' is there twice",
            ),
            refused(
                "pipe in the archive",
                layout().tar_unfinished().entry(Head::new(FIFO, b"p", 0), b"").end(),
                "'p' is a pipe",
            ),
            refused(
                "index that is a link to outside",
                Tar::new()
                    .entry(Head::new(SYMLINK, b"index.json", 0).target(b"/etc/passwd"), b"")
                    .end(),
                "is a link that leads out of it",
            ),
            refused("index that is no JSON", layout().with("index.json", *b"{").tar(), "EOF"),
            refused(
                "list that is no JSON",
                Files::default().with("manifest.json", *b"[{}]").tar(),
                "Config",
            ),
        ]
    });
}

#[test]
fn the_same_documents_without_the_lie_are_taken() {
    for archive in [
        layout().tar(),
        nested(2),
        listed("layer-0/layer.tar"),
        with_manifest(|manifest| manifest["layers"][0]["mediaType"] = LAYER.into()),
        with_config(|config| config["architecture"] = architecture().into()),
    ] {
        crate::arena::Arena::new().import(&archive).unwrap();
    }
}
