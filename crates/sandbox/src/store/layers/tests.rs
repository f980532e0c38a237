use super::*;
use crate::store::{KeyBuilder, Store};
use sandbox_core::{ByteSize, RelativePath};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const NOTHING: [PathBuf; 0] = [];

fn store() -> (TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open_in(root.path(), ByteSize::mib(1)).unwrap();
    (root, store)
}

fn key(name: &str) -> Key {
    KeyBuilder::new("test").part("name", name).finish()
}

fn path(text: &str) -> RelativePath {
    text.parse().unwrap()
}

/// Three files, two of them deeper down.
fn make(writer: &LayerWriter) -> Result<(), StoreError> {
    writer.file(&path("readme"), b"text", false)?;
    writer.file(&path("a/b/program"), b"#!/bin/sh\n", true)?;
    writer.file(&path("a/b/data"), b"", false)
}

fn not_needed(_: &LayerWriter) -> Result<(), StoreError> {
    panic!("the layer is there already")
}

/// Everything in the directories where layers are and are made.
fn left(store: &Store) -> Vec<PathBuf> {
    let listed = |name| fs::read_dir(store.path().join(name)).unwrap();
    listed("layers").chain(listed("temporary")).map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_layer_is_made_once_and_found_again() {
    let (_root, store) = store();
    let layers = store.layers();
    assert_eq!(layers.path(&key("a")), None);
    let tree = layers.build(&key("a"), "the first", make).unwrap();
    assert_eq!(layers.path(&key("a")), Some(tree.clone()));
    assert_eq!(layers.build(&key("a"), "the first", not_needed).unwrap(), tree);
    assert_eq!(fs::read(tree.join("a/b/program")).unwrap(), b"#!/bin/sh\n");
    assert_eq!(left(&store).len(), 1);
    layers.verify(&key("a")).unwrap();
}

#[test]
fn everybody_may_read_a_layer_and_its_times_tell_nothing() {
    let (_root, store) = store();
    let tree = store.layers().build(&key("a"), "modes", make).unwrap();
    for (name, mode) in
        [("", 0o755), ("a", 0o755), ("a/b/program", 0o755), ("a/b/data", 0o644), ("readme", 0o644)]
    {
        let found = tree.join(name).metadata().unwrap();
        assert_eq!(found.mode() & 0o7777, mode, "{name}");
        assert_eq!(found.mtime(), 946_684_800, "{name}");
    }
}

#[test]
fn the_list_tells_what_layers_are_about() {
    let (_root, store) = store();
    let layers = store.layers();
    assert_eq!(layers.list().unwrap(), []);
    layers.build(&key("a"), "the \"first\"\none", make).unwrap();
    layers.build(&key("b"), "nothing", |_| Ok::<_, StoreError>(())).unwrap();
    let listed = layers.list().unwrap();
    let find = |name| listed.iter().find(|layer| layer.key == key(name)).unwrap();
    let manifest = find("a").manifest.as_ref().unwrap();
    assert_eq!(manifest.about, "the \"first\"\none");
    assert_eq!((manifest.files, manifest.bytes), (3, 14));
    assert_eq!(find("b").manifest.as_ref().unwrap().files, 0);
    assert_eq!(layers.usage().unwrap(), Usage { entries: 2, bytes: 14 });
}

#[test]
fn a_layer_that_cannot_be_made_leaves_nothing() {
    let (_root, store) = store();
    let layers = store.layers();
    let failed = layers.build(&key("a"), "in vain", |writer| {
        make(writer)?;
        Err(StoreError::NoDirectory)
    });
    assert!(matches!(failed, Err(StoreError::NoDirectory)), "{failed:?}");
    assert_eq!(left(&store), NOTHING);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        layers.build(&key("a"), "in vain", |writer| -> Result<(), StoreError> {
            make(writer)?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(left(&store), NOTHING);
    layers.build(&key("a"), "at last", make).unwrap();
}

#[test]
fn what_a_killed_builder_left_is_no_layer_and_is_not_used() {
    let (_root, store) = store();
    let layers = store.layers();
    let abandoned = store.path().join("temporary").join(format!("layer-{}", key("a")));
    fs::create_dir_all(abandoned.join("tree")).unwrap();
    fs::write(abandoned.join("tree/stray"), "").unwrap();
    assert_eq!(layers.path(&key("a")), None);
    assert_eq!(layers.list().unwrap(), []);
    let tree = layers.build(&key("a"), "anew", make).unwrap();
    assert!(!tree.join("stray").exists() && !abandoned.exists());
    layers.verify(&key("a")).unwrap();
}

#[test]
fn of_builders_at_the_same_time_one_makes_it() {
    let (root, _store) = store();
    let (start, made) = (Barrier::new(4), AtomicUsize::new(0));
    let trees: Vec<PathBuf> = std::thread::scope(|scope| {
        let build = || {
            // Opened by each for itself, as processes do.
            let store = Store::open_in(root.path(), ByteSize::mib(1)).unwrap();
            start.wait();
            let tree = store.layers().build(&key("a"), "shared", |writer| {
                made.fetch_add(1, Ordering::Relaxed);
                make(writer)
            });
            let tree = tree.unwrap();
            assert!(tree.join("a/b/program").exists());
            tree
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert!(trees.iter().all(|tree| *tree == trees[0]));
}

#[test]
fn a_path_is_written_once_and_not_through_a_file() {
    let (_root, store) = store();
    for second in ["a", "a/b"] {
        let failed = store.layers().build(&key("a"), "twice", |writer| {
            writer.file(&path("a"), b"first", false)?;
            writer.file(&path(second), b"second", false)
        });
        assert!(matches!(failed, Err(StoreError::Io { .. })), "{second}: {failed:?}");
    }
}

#[test]
fn every_kind_of_change_is_noticed() {
    let (_root, store) = store();
    let layers = store.layers();
    for name in ["contents", "mode", "name", "removed", "added", "link"] {
        let tree = layers.build(&key(name), name, make).unwrap();
        layers.verify(&key(name)).unwrap();
        let readme = tree.join("readme");
        match name {
            "contents" => fs::write(readme, "TEXT"),
            "mode" => fs::set_permissions(readme, Permissions::from_mode(0o755)),
            "name" => fs::rename(readme, tree.join("README")),
            "removed" => fs::remove_file(tree.join("a/b/data")),
            "added" => fs::write(tree.join("a/new"), ""),
            _ => symlink("readme", tree.join("link")),
        }
        .unwrap();
        let found = layers.verify(&key(name));
        assert!(matches!(found, Err(StoreError::Damaged { .. })), "{name}: {found:?}");
    }
}

#[test]
fn layers_are_removed_one_by_one_or_all_even_damaged_ones() {
    let (_root, store) = store();
    let layers = store.layers();
    for name in ["a", "b", "c"] {
        layers.build(&key(name), name, make).unwrap();
    }
    for _ in 0..2 {
        layers.remove(&key("a")).unwrap();
        assert_eq!(layers.path(&key("a")), None);
    }
    let manifest = store.path().join("layers").join(key("b").to_string()).join(MANIFEST);
    fs::write(manifest, "nonsense").unwrap();
    assert_eq!(layers.clear().unwrap(), Usage { entries: 2, bytes: 14 });
    assert_eq!(left(&store), NOTHING);
}
