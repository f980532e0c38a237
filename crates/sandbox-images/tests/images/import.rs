//! Images from files, in each form that they come in.

use std::fs;

use sandbox_core::with_causes;
use sandbox_images::{ImageError, Progress};

use crate::archives::{Files, bytes, config, descriptor, gzip, image};
use crate::arena::{Arena, reference};
use crate::tar_writer::Tar;

fn layers() -> [Vec<u8>; 2] {
    [Tar::new().file("bin/sh", "shell").end(), Tar::new().file("etc/name", "two").end()]
}

/// The image is there, with all that belongs to it.
fn is_whole(arena: &Arena, name: &str) {
    let image = arena.resolve(name);
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(fs::read_to_string(image.root.join("etc/name")).unwrap(), "two");
    assert_eq!(image.config.variable("PATH"), Some("/usr/bin:/bin"));
    assert_eq!(image.config.command, ["sh"]);
    assert_eq!(image.config.working_directory.as_deref(), Some("/srv"));
}

#[test]
fn each_form_gives_the_same_image() {
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
    for (form, archive) in [
        ("layout", layout(&contents).tar()),
        ("layout with gzip", layout(&gzipped).tar()),
        ("layout with zstd", layout(&zstd).tar()),
        ("layout as a whole in gzip", gzip(&layout(&contents).tar())),
        ("docker", docker.tar()),
        ("docker as a whole in gzip", gzip(&docker.tar())),
        ("both at once", both.tar()),
    ] {
        let arena = Arena::new();
        arena.import(&archive).unwrap_or_else(|error| panic!("{form}: {error}"));
        is_whole(&arena, "x:1");
        assert_eq!(arena.contents()["temporary"], 0, "{form}");
        let listed = arena.store.list().unwrap();
        assert_eq!((listed.len(), listed[0].reference.as_str()), (1, "x:1"), "{form}");
        assert_eq!((listed[0].layers, listed[0].entries), (2, 2), "{form}");
    }
}

#[test]
fn a_layout_may_be_a_directory() {
    let arena = Arena::new();
    let directory = arena.path().join("layout");
    for (path, content) in Files::layout("x:1", &config(&layers()), &layers()).0 {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    arena.store.import(&directory, None, &mut |_| {}).unwrap();
    is_whole(&arena, "x:1");
    // A link in it is not followed.
    let index = directory.join("index.json");
    fs::rename(&index, arena.path().join("outside")).unwrap();
    std::os::unix::fs::symlink(arena.path().join("outside"), &index).unwrap();
    let error = arena.store.import(&directory, None, &mut |_| {}).unwrap_err();
    assert!(with_causes(&error).contains("is a link"), "{}", with_causes(&error));
}

#[test]
fn layers_that_docker_wrote_once_and_linked_are_found() {
    let [first, _] = layers();
    let files = Files::docker("x:1", &[first.clone(), first]).without("layer-1/layer.tar");
    let archive = files.tar_unfinished().symlink("layer-1/layer.tar", "../layer-0/layer.tar").end();
    let arena = Arena::new();
    arena.import(&archive).unwrap();
    assert_eq!(arena.store.list().unwrap()[0].layers, 2);
}

#[test]
fn the_image_for_this_machine_is_taken_from_an_index() {
    let ours = Files::layout("x:1", &config(&layers()), &layers());
    let manifest = bytes(&crate::archives::manifest(&bytes(&config(&layers())), &layers()));
    let mut entry = descriptor(crate::archives::MANIFEST, &manifest);
    entry["platform"] =
        serde_json::json!({ "os": "linux", "architecture": crate::archives::architecture() });
    // That of others is not even there.
    let mut other = descriptor(crate::archives::MANIFEST, b"other");
    other["platform"] = serde_json::json!({ "os": "linux", "architecture": "vax" });
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, entry] });
    let index = bytes(&index);
    let arena = Arena::new();
    let nested =
        ours.blob(index.clone()).indexed("x:1", descriptor(crate::archives::INDEX, &index));
    arena.import(&nested.tar()).unwrap();
    is_whole(&arena, "x:1");
}

#[test]
fn a_name_can_be_given_to_one_image_and_not_to_two() {
    let arena = Arena::new();
    let path = arena.path().join("archive");
    fs::write(&path, image("latest", &layers())).unwrap();
    let name = reference("ghcr.io/ada/mine:2");
    let kept = arena.store.import(&path, Some(&name), &mut |_| {}).unwrap();
    assert_eq!(kept[0].reference, "ghcr.io/ada/mine:2");
    is_whole(&arena, "ghcr.io/ada/mine:2");
    let mut two = Files::docker("a:1", &layers());
    let list: serde_json::Value = serde_json::from_slice(&two.0["manifest.json"]).unwrap();
    let mut second = list[0].clone();
    second["RepoTags"] = serde_json::json!(["b:1", "b:2"]);
    two = two.with("manifest.json", bytes(&serde_json::json!([list[0], second])));
    fs::write(&path, two.tar()).unwrap();
    let error = arena.store.import(&path, Some(&name), &mut |_| {}).unwrap_err();
    assert!(with_causes(&error).contains("there are 2 images in it"), "{error}");
    arena.store.import(&path, None, &mut |_| {}).unwrap();
    for name in ["a:1", "b:1", "b:2"] {
        is_whole(&arena, name);
    }
}

#[test]
fn what_is_being_done_is_told() {
    let arena = Arena::new();
    let path = arena.path().join("archive");
    fs::write(&path, image("x:1", &layers())).unwrap();
    let mut told = Vec::new();
    arena.store.import(&path, None, &mut |progress| told.push(progress)).unwrap();
    let unpacking = |layer| Progress::Unpacking { layer, of: 2 };
    assert_eq!(told, [unpacking(1), unpacking(2)]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let arena = Arena::new();
    let error = arena.store.import("/nonexistent".as_ref(), None, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ImageError::Image { .. }) && error.is_ours());
    assert!(with_causes(&error).contains("/nonexistent"), "{error}");
}
