//! What stays, what goes, and what happens when several want the store at once.

use std::fs;
use std::process::Command;

use sandbox_images::{ImageError, Pruned, Store};

use crate::archives::image;
use crate::arena::{Arena, reference};
use crate::tar_writer::Tar;

fn layer(content: &str) -> Vec<u8> {
    Tar::new().file("file", content).file("d/other", content).end()
}

#[test]
fn what_no_name_needs_goes_and_the_rest_stays() {
    let arena = Arena::new();
    arena.import(&image("a:1", &[layer("shared"), layer("a")])).unwrap();
    arena.import(&image("b:1", &[layer("shared"), layer("b")])).unwrap();
    assert_eq!((arena.contents()["roots"], arena.contents()["blobs"]), (2, 7));
    assert_eq!(arena.store.prune().unwrap(), Pruned::default());
    arena.store.remove(&reference("a:1")).unwrap();
    let error = arena.store.resolve(&reference("a:1")).unwrap_err();
    assert!(matches!(error, ImageError::NoSuchImage(_)), "{error}");
    let pruned = arena.store.prune().unwrap();
    assert_eq!((pruned.roots, pruned.blobs, pruned.in_use), (1, 3, 0));
    assert!(pruned.bytes > 1000, "{pruned:?}");
    let image = arena.resolve("b:1");
    assert_eq!(fs::read_to_string(image.root.join("file")).unwrap(), "b");
    drop(image);
    arena.store.remove(&reference("b:1")).unwrap();
    assert!(matches!(arena.store.remove(&reference("b:1")), Err(ImageError::NoSuchImage(_))));
    arena.store.prune().unwrap();
    assert!(arena.store_is_empty(), "{:?}", arena.contents());
}

#[test]
fn an_image_that_is_used_stays_until_it_is_not() {
    let arena = Arena::new();
    arena.import(&image("a:1", &[layer("a")])).unwrap();
    let image = arena.resolve("a:1");
    let also = image.clone();
    arena.store.remove(&reference("a:1")).unwrap();
    drop(image);
    let pruned = arena.store.prune().unwrap();
    assert_eq!((pruned.in_use, pruned.roots, pruned.blobs), (1, 0, 0));
    assert!(also.root.join("file").exists());
    drop(also);
    assert_eq!(arena.store.prune().unwrap().roots, 1);
    assert!(arena.store_is_empty());
}

#[test]
fn a_name_moves_to_another_image() {
    let arena = Arena::new();
    arena.import(&image("a:1", &[layer("old")])).unwrap();
    arena.import(&image("a:1", &[layer("new")])).unwrap();
    assert_eq!(fs::read_to_string(arena.resolve("a:1").root.join("file")).unwrap(), "new");
    assert_eq!(arena.store.list().unwrap().len(), 1);
    assert_eq!(arena.store.prune().unwrap().roots, 1);
    assert_eq!(fs::read_to_string(arena.resolve("a:1").root.join("file")).unwrap(), "new");
}

#[test]
fn what_a_dead_process_left_is_swept() {
    let arena = Arena::new();
    let left = arena.store.path().join("temporary/dead/root-x/tree");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half"), "").unwrap();
    arena.import(&image("a:1", &[layer("a")])).unwrap();
    assert_eq!(arena.contents()["temporary"], 0);
    fs::create_dir_all(&left).unwrap();
    assert_eq!(arena.store.prune().unwrap().leftovers, 1);
    assert_eq!(arena.contents()["temporary"], 0);
}

#[test]
fn what_somebody_else_is_adding_is_neither_swept_nor_pruned() {
    let arena = Arena::new();
    arena.import(&image("b:1", &[layer("b")])).unwrap();
    let path = arena.path().join("slow");
    fs::write(&path, image("a:1", &[layer("a")])).unwrap();
    let (store, other) = (arena.store.clone(), arena.store.clone());
    let archive = arena.path().join("other");
    fs::write(&archive, image("c:1", &[layer("c")])).unwrap();
    // In the middle of one import there is time for everything else.
    let mut tried = 0;
    store
        .import(&path, None, &mut |_| {
            tried += 1;
            other.import(&archive, None, &mut |_| {}).unwrap();
            other.remove(&reference("b:1")).unwrap();
            assert!(matches!(other.prune(), Err(ImageError::Busy)));
        })
        .unwrap();
    assert_eq!(tried, 1);
    let names: Vec<String> = store.list().unwrap().into_iter().map(|kept| kept.reference).collect();
    assert_eq!(names, ["a:1", "c:1"]);
    assert_eq!(store.prune().unwrap().roots, 1);
}

#[test]
fn many_threads_import_the_same_image() {
    let arena = Arena::new();
    let path = arena.path().join("archive");
    fs::write(&path, image("a:1", &[layer("a"), layer("b")])).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                arena.store.import(&path, None, &mut |_| {}).unwrap();
                assert!(arena.resolve("a:1").root.join("file").exists());
            });
        }
    });
    assert_eq!(arena.contents()["temporary"], 0);
    assert_eq!((arena.contents()["roots"], arena.contents()["blobs"]), (1, 4));
}

/// Not a test by itself: what the processes of the next one do.
#[test]
#[ignore = "started by another test"]
#[expect(clippy::disallowed_methods, reason = "this is how it is told what to do")]
fn import_in_a_process_of_its_own() {
    let place = std::path::PathBuf::from(std::env::var_os("SANDBOX_IMAGES_TEST").unwrap());
    let store = Store::open(&place.join("store")).unwrap();
    for _ in 0..5 {
        store.import(&place.join("archive"), None, &mut |_| {}).unwrap();
        assert!(store.resolve(&reference("a:1")).unwrap().root.join("file").exists());
        // Others may be adding.
        match store.prune() {
            Ok(_) | Err(ImageError::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn several_processes_import_resolve_and_prune_at_once() {
    let arena = Arena::new();
    fs::write(arena.path().join("archive"), image("a:1", &[layer("a"), layer("b")])).unwrap();
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::import_in_a_process_of_its_own", "--ignored"])
            .env("SANDBOX_IMAGES_TEST", arena.path())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..4).map(|_| start()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    arena.store.prune().unwrap();
    assert_eq!(arena.contents()["temporary"], 0);
    assert_eq!((arena.contents()["roots"], arena.contents()["blobs"]), (1, 4));
    assert!(arena.resolve("a:1").root.join("file").exists());
}

#[test]
fn an_import_that_is_killed_leaves_nothing_that_counts() {
    let arena = Arena::new();
    let big = Tar::new().file("file", vec![b'x'; 3 << 20]).file("d/other", "").end();
    fs::write(arena.path().join("archive"), image("a:1", &[big])).unwrap();
    let temporary = arena.store.path().join("temporary");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::import_in_a_process_of_its_own", "--ignored"])
        .env("SANDBOX_IMAGES_TEST", arena.path())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while fs::read_dir(&temporary).unwrap().next().is_none() {
        assert!(std::time::Instant::now() < deadline, "it never began");
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    arena.store.prune().unwrap();
    assert!(arena.store_is_empty(), "{:?}", arena.contents());
}

#[test]
fn a_store_that_others_can_write_to_is_refused() {
    for mode in [0o770, 0o702, 0o1777] {
        let place = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(place.path(), mode).unwrap();
        assert!(matches!(Store::open(place.path()), Err(ImageError::NotPrivate(_))));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_was_changed_in_the_store_is_noticed() {
    let arena = Arena::new();
    arena.import(&image("a:1", &[layer("a")])).unwrap();
    let kept = arena.store.find(&reference("a:1")).unwrap();
    let manifest = arena.store.path().join("blobs").join(kept.digest.digits());
    fs::write(&manifest, "{}").unwrap();
    let error = arena.store.resolve(&reference("a:1")).unwrap_err();
    assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
}
