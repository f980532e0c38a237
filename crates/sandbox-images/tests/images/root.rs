//! Images created from root file systems.

use std::fs;

use sandbox_core::with_causes;
use sandbox_images::{ImageConfig, ImageInfo, Limits};

use crate::harness::{Harness, reference};
use crate::tar_writer::{CHARACTER_DEVICE, Head, Tar};

fn config() -> ImageConfig {
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let command = vec!["sh".to_owned()];
    ImageConfig { environment: vec![path], command, ..ImageConfig::default() }
}

/// Creates an image. An error is one line with all causes.
fn add(harness: &Harness, name: &str, root: &[u8]) -> Result<ImageInfo, String> {
    let added = harness.store.add_root(&mut &*root, &config(), &reference(name), &mut |_| {});
    added.map_err(|error| with_causes(&error))
}

#[test]
fn the_same_root_gives_the_same_image() {
    let harness = Harness::new();
    let root = Tar::new().file("./bin/sh", "shell").end();
    let first = add(&harness, "x/y:1", &root).unwrap();
    assert_eq!((first.reference.as_str(), first.layers), ("x/y:1", 1));
    let image = harness.resolve("x/y:1");
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(image.config, config());
    // The mount point of sandboxes.
    assert_eq!(fs::read_dir(image.root.join("dev")).unwrap().count(), 0);
    let second = add(&harness, "z", &root).unwrap();
    assert_eq!(first.digest, second.digest);
    assert_eq!((harness.contents()["roots"], harness.contents()["temporary"]), (1, 0));
    let other = add(&harness, "z", &Tar::new().file("bin/sh", "another").end()).unwrap();
    assert_ne!(first.digest, other.digest);
}

#[test]
fn a_root_is_checked_like_an_untrusted_image() {
    let device = Head::new(CHARACTER_DEVICE, b"dev/null", 0).device(1, 3);
    for (root, reason) in [
        (Tar::new().file("../x", "").end(), "'../x'"),
        (Tar::new().entry(device, b"").end(), "'dev/null' is a device"),
        (b"x".repeat(2000), "cannot read the tar archive"),
    ] {
        let harness = Harness::new();
        let error = add(&harness, "x:1", &root).unwrap_err();
        assert!(error.starts_with("cannot use image 'x:1': "), "{error}");
        assert!(error.contains(reason), "{error}");
        assert!(harness.store_is_empty() && harness.canary_is_unharmed());
    }
}

#[test]
fn a_root_that_is_too_large_is_rejected() {
    let harness = Harness::with_limits(Limits { blob_bytes: 4096, ..Limits::default() });
    let error = add(&harness, "x:1", &Tar::new().file("a", "x".repeat(5000)).end()).unwrap_err();
    assert!(error.contains("the size of the layer in bytes exceeds the limit of 4096"), "{error}");
    assert!(harness.store_is_empty());
}
