//! Images made of root file systems.

use std::fs;

use sandbox_core::with_causes;
use sandbox_images::{ImageConfig, Kept, Limits};

use crate::arena::{Arena, reference};
use crate::tar_writer::{CHARACTER_DEVICE, Head, Tar};

fn config() -> ImageConfig {
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let command = vec!["sh".to_owned()];
    ImageConfig { environment: vec![path], command, ..ImageConfig::default() }
}

/// Adds one; what is wrong with it is one line with all causes.
fn add(arena: &Arena, name: &str, root: &[u8]) -> Result<Kept, String> {
    let added = arena.store.add_root(&mut &*root, &config(), &reference(name), &mut |_| {});
    added.map_err(|error| with_causes(&error))
}

#[test]
fn a_root_becomes_an_image_and_the_same_root_the_same_image() {
    let arena = Arena::new();
    let root = Tar::new().file("./bin/sh", "shell").end();
    let first = add(&arena, "x/y:1", &root).unwrap();
    assert_eq!((first.reference.as_str(), first.layers), ("x/y:1", 1));
    let image = arena.resolve("x/y:1");
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(image.config, config());
    // Something will be mounted there.
    assert_eq!(fs::read_dir(image.root.join("dev")).unwrap().count(), 0);
    let second = add(&arena, "z", &root).unwrap();
    assert_eq!(first.digest, second.digest);
    assert_eq!((arena.contents()["roots"], arena.contents()["temporary"]), (1, 0));
    let other = add(&arena, "z", &Tar::new().file("bin/sh", "another").end()).unwrap();
    assert_ne!(first.digest, other.digest);
}

#[test]
fn a_root_is_judged_like_one_from_a_stranger() {
    let device = Head::new(CHARACTER_DEVICE, b"dev/null", 0).device(1, 3);
    for (root, reason) in [
        (Tar::new().file("../x", "").end(), "'../x'"),
        (Tar::new().entry(device, b"").end(), "'dev/null' is a device"),
        (b"x".repeat(2000), "cannot be read as a tar archive"),
    ] {
        let arena = Arena::new();
        let error = add(&arena, "x:1", &root).unwrap_err();
        assert!(error.starts_with("the image 'x:1' cannot be taken: "), "{error}");
        assert!(error.contains(reason), "{error}");
        assert!(arena.store_is_empty() && arena.canary_is_unharmed());
    }
}

#[test]
fn a_root_that_is_too_large_is_refused() {
    let arena = Arena::with_limits(Limits { blob_bytes: 4096, ..Limits::default() });
    let error = add(&arena, "x:1", &Tar::new().file("a", "x".repeat(5000)).end()).unwrap_err();
    assert!(error.contains("the size of its layer in bytes is over the limit of 4096"), "{error}");
    assert!(arena.store_is_empty());
}
