//! Imports in each supported format.

use std::fs;

use sandbox_core::with_causes;
use sandbox_images::{ImageError, Progress};

use crate::archives::{Files, bytes, config, descriptor, gzip, image};
use crate::harness::{Harness, reference};
use crate::tar_writer::Tar;

fn layers() -> [Vec<u8>; 2] {
    [Tar::new().file("bin/sh", "shell").end(), Tar::new().file("etc/name", "two").end()]
}

/// Checks that the image is complete.
fn check_complete(harness: &Harness, name: &str) {
    let image = harness.resolve(name);
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(fs::read_to_string(image.root.join("etc/name")).unwrap(), "two");
    assert_eq!(image.config.variable("PATH"), Some("/usr/bin:/bin"));
    assert_eq!(image.config.command, ["sh"]);
    assert_eq!(image.config.working_directory.as_deref(), Some("/srv"));
}

#[test]
fn all_formats_give_the_same_image() {
    let contents = layers();
    let zstd = |layer: &Vec<u8>| {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(layer.as_slice(), level)
    };
    let gzipped: Vec<Vec<u8>> = contents.iter().map(|layer| gzip(layer)).collect();
    let zstd: Vec<Vec<u8>> = contents.iter().map(zstd).collect();
    let layout =
        |sent: &[Vec<u8>]| Files::layout("docker.io/library/x:1", &config(&contents), sent);
    let docker = Files::docker("x:1", &contents);
    let mut both = layout(&contents);
    both.0.extend(docker.0.clone());
    for (format, archive) in [
        ("layout", layout(&contents).tar()),
        ("layout with gzip", layout(&gzipped).tar()),
        ("layout with zstd", layout(&zstd).tar()),
        ("compressed layout", gzip(&layout(&contents).tar())),
        ("docker", docker.tar()),
        ("compressed docker", gzip(&docker.tar())),
        ("both formats", both.tar()),
    ] {
        let harness = Harness::new();
        harness.import(&archive).unwrap_or_else(|error| panic!("{format}: {error}"));
        check_complete(&harness, "x:1");
        assert_eq!(harness.contents()["temporary"], 0, "{format}");
        let listed = harness.store.list().unwrap();
        assert_eq!((listed.len(), listed[0].reference.as_str()), (1, "x:1"), "{format}");
        assert_eq!((listed[0].layers, listed[0].entries), (2, 2), "{format}");
    }
}

#[test]
fn a_layout_may_be_a_directory() {
    let harness = Harness::new();
    let directory = harness.path().join("layout");
    for (path, content) in Files::layout("x:1", &config(&layers()), &layers()).0 {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    harness.store.import(&directory, None, &mut |_| {}).unwrap();
    check_complete(&harness, "x:1");
    // Links in it are not followed.
    let index = directory.join("index.json");
    fs::rename(&index, harness.path().join("outside")).unwrap();
    std::os::unix::fs::symlink(harness.path().join("outside"), &index).unwrap();
    let error = harness.store.import(&directory, None, &mut |_| {}).unwrap_err();
    assert!(with_causes(&error).contains("is a link"), "{}", with_causes(&error));
}

#[test]
fn layers_that_docker_wrote_as_links_are_found() {
    let [first, _] = layers();
    let files = Files::docker("x:1", &[first.clone(), first]).without("layer-1/layer.tar");
    let archive = files.tar_unfinished().symlink("layer-1/layer.tar", "../layer-0/layer.tar").end();
    let harness = Harness::new();
    harness.import(&archive).unwrap();
    assert_eq!(harness.store.list().unwrap()[0].layers, 2);
}

#[test]
fn the_image_for_this_platform_is_selected_from_an_index() {
    let layout = Files::layout("x:1", &config(&layers()), &layers());
    let manifest = bytes(&crate::archives::manifest(&bytes(&config(&layers())), &layers()));
    let mut entry = descriptor(crate::archives::MANIFEST, &manifest);
    entry["platform"] =
        serde_json::json!({ "os": "linux", "architecture": crate::archives::architecture() });
    // The manifest for the other platform is missing.
    let mut other = descriptor(crate::archives::MANIFEST, b"other");
    other["platform"] = serde_json::json!({ "os": "linux", "architecture": "vax" });
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, entry] });
    let index = bytes(&index);
    let harness = Harness::new();
    let nested =
        layout.blob(index.clone()).with_index("x:1", descriptor(crate::archives::INDEX, &index));
    harness.import(&nested.tar()).unwrap();
    check_complete(&harness, "x:1");
}

#[test]
fn a_name_can_be_specified_for_a_single_image_only() {
    let harness = Harness::new();
    let path = harness.path().join("archive");
    fs::write(&path, image("latest", &layers())).unwrap();
    let name = reference("ghcr.io/ada/mine:2");
    let imported = harness.store.import(&path, Some(&name), &mut |_| {}).unwrap();
    assert_eq!(imported[0].reference, "ghcr.io/ada/mine:2");
    check_complete(&harness, "ghcr.io/ada/mine:2");
    let mut two = Files::docker("a:1", &layers());
    let list: serde_json::Value = serde_json::from_slice(&two.0["manifest.json"]).unwrap();
    let mut second = list[0].clone();
    second["RepoTags"] = serde_json::json!(["b:1", "b:2"]);
    two = two.with("manifest.json", bytes(&serde_json::json!([list[0], second])));
    fs::write(&path, two.tar()).unwrap();
    let error = harness.store.import(&path, Some(&name), &mut |_| {}).unwrap_err();
    assert!(with_causes(&error).contains("contains 2 images"), "{error}");
    harness.store.import(&path, None, &mut |_| {}).unwrap();
    for name in ["a:1", "b:1", "b:2"] {
        check_complete(&harness, name);
    }
}

#[test]
fn progress_is_reported() {
    let harness = Harness::new();
    let path = harness.path().join("archive");
    fs::write(&path, image("x:1", &layers())).unwrap();
    let mut reported = Vec::new();
    harness.store.import(&path, None, &mut |progress| reported.push(progress)).unwrap();
    let unpacking = |layer| Progress::Unpacking { layer, of: 2 };
    assert_eq!(reported, [unpacking(1), unpacking(2)]);
}

#[test]
fn a_missing_file_is_named() {
    let harness = Harness::new();
    let error = harness.store.import("/nonexistent".as_ref(), None, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ImageError::Image { .. }) && error.is_internal());
    assert!(with_causes(&error).contains("/nonexistent"), "{error}");
}
