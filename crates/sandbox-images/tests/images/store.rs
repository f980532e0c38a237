//! Removal, and concurrent use of a store.

use std::fs;
use std::process::Command;

use sandbox_images::{ImageError, Pruned, Store};

use crate::archives::image;
use crate::harness::{Harness, reference};
use crate::tar_writer::Tar;

fn layer(content: &str) -> Vec<u8> {
    Tar::new().file("file", content).file("d/other", content).end()
}

#[test]
fn prune_removes_only_images_without_a_name() {
    let harness = Harness::new();
    harness.import(&image("a:1", &[layer("shared"), layer("a")])).unwrap();
    harness.import(&image("b:1", &[layer("shared"), layer("b")])).unwrap();
    assert_eq!((harness.contents()["roots"], harness.contents()["blobs"]), (2, 7));
    assert_eq!(harness.store.prune().unwrap(), Pruned::default());
    harness.store.remove(&reference("a:1")).unwrap();
    let error = harness.store.resolve(&reference("a:1")).unwrap_err();
    assert!(matches!(error, ImageError::NoSuchImage(_)), "{error}");
    let pruned = harness.store.prune().unwrap();
    assert_eq!((pruned.roots, pruned.blobs, pruned.in_use), (1, 3, 0));
    assert!(pruned.bytes > 1000, "{pruned:?}");
    let image = harness.resolve("b:1");
    assert_eq!(fs::read_to_string(image.root.join("file")).unwrap(), "b");
    drop(image);
    harness.store.remove(&reference("b:1")).unwrap();
    assert!(matches!(harness.store.remove(&reference("b:1")), Err(ImageError::NoSuchImage(_))));
    harness.store.prune().unwrap();
    assert!(harness.store_is_empty(), "{:?}", harness.contents());
}

#[test]
fn an_image_in_use_is_not_removed() {
    let harness = Harness::new();
    harness.import(&image("a:1", &[layer("a")])).unwrap();
    let image = harness.resolve("a:1");
    let also = image.clone();
    harness.store.remove(&reference("a:1")).unwrap();
    drop(image);
    let pruned = harness.store.prune().unwrap();
    assert_eq!((pruned.in_use, pruned.roots, pruned.blobs), (1, 0, 0));
    assert!(also.root.join("file").exists());
    drop(also);
    assert_eq!(harness.store.prune().unwrap().roots, 1);
    assert!(harness.store_is_empty());
}

#[test]
fn a_name_moves_to_another_image() {
    let harness = Harness::new();
    harness.import(&image("a:1", &[layer("old")])).unwrap();
    harness.import(&image("a:1", &[layer("new")])).unwrap();
    assert_eq!(fs::read_to_string(harness.resolve("a:1").root.join("file")).unwrap(), "new");
    assert_eq!(harness.store.list().unwrap().len(), 1);
    assert_eq!(harness.store.prune().unwrap().roots, 1);
    assert_eq!(fs::read_to_string(harness.resolve("a:1").root.join("file")).unwrap(), "new");
}

#[test]
fn incomplete_images_of_killed_processes_are_removed() {
    let harness = Harness::new();
    let leftover = harness.store.path().join("temporary/dead/root-x/tree");
    fs::create_dir_all(&leftover).unwrap();
    fs::write(leftover.join("half"), "").unwrap();
    harness.import(&image("a:1", &[layer("a")])).unwrap();
    assert_eq!(harness.contents()["temporary"], 0);
    fs::create_dir_all(&leftover).unwrap();
    assert_eq!(harness.store.prune().unwrap().leftovers, 1);
    assert_eq!(harness.contents()["temporary"], 0);
}

#[test]
fn images_being_added_are_not_removed() {
    let harness = Harness::new();
    harness.import(&image("b:1", &[layer("b")])).unwrap();
    let path = harness.path().join("slow");
    fs::write(&path, image("a:1", &[layer("a")])).unwrap();
    let (store, other) = (harness.store.clone(), harness.store.clone());
    let archive = harness.path().join("other");
    fs::write(&archive, image("c:1", &[layer("c")])).unwrap();
    // Runs other operations in the middle of one import.
    let mut calls = 0;
    store
        .import(&path, None, &mut |_| {
            calls += 1;
            other.import(&archive, None, &mut |_| {}).unwrap();
            other.remove(&reference("b:1")).unwrap();
            assert!(matches!(other.prune(), Err(ImageError::Busy)));
        })
        .unwrap();
    assert_eq!(calls, 1);
    let names: Vec<String> =
        store.list().unwrap().into_iter().map(|image| image.reference).collect();
    assert_eq!(names, ["a:1", "c:1"]);
    assert_eq!(store.prune().unwrap().roots, 1);
}

#[test]
fn threads_can_import_the_same_image_concurrently() {
    let harness = Harness::new();
    let path = harness.path().join("archive");
    fs::write(&path, image("a:1", &[layer("a"), layer("b")])).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                harness.store.import(&path, None, &mut |_| {}).unwrap();
                assert!(harness.resolve("a:1").root.join("file").exists());
            });
        }
    });
    assert_eq!(harness.contents()["temporary"], 0);
    assert_eq!((harness.contents()["roots"], harness.contents()["blobs"]), (1, 4));
}

/// The child process of the next tests.
#[test]
#[ignore = "started by another test"]
#[expect(clippy::disallowed_methods, reason = "the parent passes arguments by the environment")]
fn import_in_a_child_process() {
    let directory = std::path::PathBuf::from(std::env::var_os("SANDBOX_IMAGES_TEST").unwrap());
    let store = Store::open(&directory.join("store")).unwrap();
    for _ in 0..5 {
        store.import(&directory.join("archive"), None, &mut |_| {}).unwrap();
        assert!(store.resolve(&reference("a:1")).unwrap().root.join("file").exists());
        // Other processes may be adding images.
        match store.prune() {
            Ok(_) | Err(ImageError::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn processes_can_import_resolve_and_prune_concurrently() {
    let harness = Harness::new();
    fs::write(harness.path().join("archive"), image("a:1", &[layer("a"), layer("b")])).unwrap();
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::import_in_a_child_process", "--ignored"])
            .env("SANDBOX_IMAGES_TEST", harness.path())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..4).map(|_| start()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    harness.store.prune().unwrap();
    assert_eq!(harness.contents()["temporary"], 0);
    assert_eq!((harness.contents()["roots"], harness.contents()["blobs"]), (1, 4));
    assert!(harness.resolve("a:1").root.join("file").exists());
}

#[test]
fn a_killed_import_leaves_no_image() {
    let harness = Harness::new();
    let big = Tar::new().file("file", vec![b'x'; 3 << 20]).file("d/other", "").end();
    fs::write(harness.path().join("archive"), image("a:1", &[big])).unwrap();
    let temporary = harness.store.path().join("temporary");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::import_in_a_child_process", "--ignored"])
        .env("SANDBOX_IMAGES_TEST", harness.path())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while fs::read_dir(&temporary).unwrap().next().is_none() {
        assert!(std::time::Instant::now() < deadline, "the import did not start");
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    harness.store.prune().unwrap();
    assert!(harness.store_is_empty(), "{:?}", harness.contents());
}

#[test]
fn a_store_that_others_can_write_to_is_rejected() {
    for mode in [0o770, 0o702, 0o1777] {
        let directory = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(directory.path(), mode).unwrap();
        assert!(matches!(Store::open(directory.path()), Err(ImageError::NotPrivate(_))));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_modified_blob_is_detected() {
    let harness = Harness::new();
    harness.import(&image("a:1", &[layer("a")])).unwrap();
    let image = harness.store.find(&reference("a:1")).unwrap();
    let manifest = harness.store.path().join("blobs").join(image.digest.digits());
    fs::write(&manifest, "{}").unwrap();
    let error = harness.store.resolve(&reference("a:1")).unwrap_err();
    assert!(matches!(error, ImageError::Corrupt { .. }), "{error}");
}
