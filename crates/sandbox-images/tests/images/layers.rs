//! How layers combine, compared with the OCI specification.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::archives::image;
use crate::harness::{Harness, snapshot};
use crate::tar_writer::{DIRECTORY, FILE, Head, Tar};

/// The root of an image with these layers, which exists as long as the harness.
fn unpacked(layers: &[Tar]) -> (Harness, PathBuf) {
    let harness = Harness::new();
    let layers: Vec<Vec<u8>> = layers.iter().map(|layer| layer.clone().end()).collect();
    harness.import(&image("x:1", &layers)).unwrap();
    let root = harness.resolve("x:1").root;
    (harness, root)
}

/// All paths below a directory, with the contents of files and the targets of links.
fn listing(root: &Path) -> Vec<String> {
    let shown = snapshot(root).into_iter().filter(|(path, _)| *path != PathBuf::new());
    let shown = shown.map(|(path, (_, _, _, content))| {
        let content = String::from_utf8_lossy(&content).into_owned();
        if content.is_empty() {
            path.display().to_string()
        } else {
            format!("{}={content}", path.display())
        }
    });
    shown.collect()
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_whiteout_removes_files_of_earlier_layers() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("a", "1").file("d/x", "1").file("d/y", "1").file("e/f/g", "1"),
        Tar::new().file(".wh.a", "").file("d/.wh.x", "").file(".wh.e", "").file(".wh.never", ""),
    ]);
    assert_eq!(listing(&root), ["d", "d/y=1"]);
}

#[test]
fn a_whiteout_does_not_affect_its_own_layer_in_any_order() {
    for second in [
        Tar::new().file(".wh.a", "").file("a", "2").file("d/new", "2").file(".wh.d", ""),
        Tar::new().file("a", "2").file(".wh.a", "").file(".wh.d", "").file("d/new", "2"),
    ] {
        let (_arena, root) =
            unpacked(&[Tar::new().file("a", "1").file("d/old", "1").file("d/s/old", "1"), second]);
        assert_eq!(listing(&root), ["a=2", "d", "d/new=2"]);
    }
}

#[test]
fn an_opaque_directory_hides_files_of_earlier_layers() {
    for second in [
        Tar::new()
            .directory("d")
            .file("d/.wh..wh..opq", "")
            .file("d/new", "2")
            .file("d/s/new", "2"),
        Tar::new()
            .directory("d")
            .file("d/new", "2")
            .file("d/s/new", "2")
            .file("d/.wh..wh..opq", ""),
    ] {
        let first =
            Tar::new().file("d/old", "1").file("d/s/old", "1").file("d/new", "1").file("a", "1");
        let (_arena, root) = unpacked(&[first, second]);
        assert_eq!(listing(&root), ["a=1", "d", "d/new=2", "d/s", "d/s/new=2"]);
    }
}

#[test]
fn whiteouts_follow_links_inside_the_image() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("usr/lib/a", "1").file("usr/lib/b", "1").symlink("lib", "usr/lib"),
        Tar::new().file("lib/.wh.a", ""),
    ]);
    assert_eq!(listing(&root), ["lib=usr/lib", "usr", "usr/lib", "usr/lib/b=1"]);
}

#[test]
fn a_later_layer_replaces_files_of_any_type() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("file", "1").directory("dir").file("dir/x", "1").symlink("link", "file"),
        Tar::new().directory("file").file("dir", "2").file("link", "2"),
    ]);
    assert_eq!(listing(&root), ["dir=2", "file", "link=2"]);
}

#[test]
fn an_existing_directory_keeps_its_contents() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("d/x", "1"),
        Tar::new().entry(Head::new(DIRECTORY, b"d/", 0).mode(0o750), b"").file("d/y", "2"),
    ]);
    assert_eq!(listing(&root), ["d", "d/x=1", "d/y=2"]);
    assert_eq!(mode(&root.join("d")), 0o750);
}

#[test]
fn the_last_of_two_files_with_the_same_name_counts() {
    let (_arena, root) = unpacked(&[Tar::new().file("a", "1").file("./a", "2")]);
    assert_eq!(listing(&root), ["a=2"]);
}

#[test]
fn paths_through_links_stay_in_the_image() {
    let (_arena, root) = unpacked(&[
        Tar::new()
            .directory("usr/lib")
            .symlink("lib", "usr/lib")
            .symlink("abs", "/usr/lib")
            .symlink("usr/up", "../../../../usr/lib")
            .symlink("twice", "lib"),
        Tar::new()
            .file("lib/one", "1")
            .file("abs/two", "2")
            .file("usr/up/three", "3")
            .file("twice/new/four", "4")
            .hard_link("lib/link", "abs/one"),
    ]);
    let below: Vec<String> = listing(&root.join("usr/lib"));
    assert_eq!(below, ["link=1", "new", "new/four=4", "one=1", "three=3", "two=2"]);
    assert!(root.join("lib").is_symlink() && root.join("abs").is_symlink());
}

#[test]
fn a_directory_replaces_a_link_of_an_earlier_layer() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("usr/lib/a", "1").symlink("lib", "usr/lib"),
        Tar::new().directory("lib").file("lib/b", "2"),
    ]);
    assert_eq!(listing(&root), ["lib", "lib/b=2", "usr", "usr/lib", "usr/lib/a=1"]);
}

#[test]
fn hard_links_share_a_file_until_a_layer_replaces_one() {
    let (_arena, root) = unpacked(&[
        Tar::new().file("a", "1").hard_link("b", "a"),
        Tar::new().hard_link("c", "./a").file("b", "2"),
    ]);
    assert_eq!(listing(&root), ["a=1", "b=2", "c=1"]);
    let inode = |name: &str| root.join(name).metadata().unwrap().ino();
    assert_eq!(inode("a"), inode("c"));
    assert_ne!(inode("a"), inode("b"));
}

#[test]
fn setuid_and_setgid_are_dropped_and_other_modes_kept() {
    let with = |path: &str, mode| Head::new(FILE, path.as_bytes(), 0).mode(mode);
    let directory = |path: &str, mode| Head::new(DIRECTORY, path.as_bytes(), 0).mode(mode);
    let (_arena, root) = unpacked(&[Tar::new()
        .entry(with("setuid", 0o4755), b"")
        .entry(with("setgid", 0o2755), b"")
        .entry(with("both", 0o6777), b"")
        .entry(with("secret", 0o640), b"")
        .entry(with("nothing", 0), b"")
        .entry(directory("tmp", 0o1777), b"")
        .entry(directory("shared", 0o2775), b"")
        .entry(directory("closed", 0o000), b"")
        .file("closed/in", "x")
        .hard_link("hard", "setuid")]);
    for (name, expected) in [
        ("setuid", 0o755),
        ("hard", 0o755),
        ("setgid", 0o755),
        ("both", 0o777),
        ("secret", 0o640),
        ("tmp", 0o1777),
        ("shared", 0o775),
        // The owner of the store can always read and remove files.
        ("nothing", 0o400),
        ("closed", 0o700),
        ("", 0o755),
    ] {
        assert_eq!(mode(&root.join(name)), expected, "{name}");
    }
    let metadata = root.join("setuid").metadata().unwrap();
    let user = rustix::process::geteuid().as_raw();
    assert_eq!((metadata.uid(), metadata.mtime()), (user, 1_600_000_000));
}

#[test]
fn long_names_and_targets_are_complete() {
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(200));
    let gnu = format!("g/{}", "g".repeat(150));
    let (_arena, root) = unpacked(&[Tar::new()
        .pax(&[("path", long.as_bytes())])
        .file("short", "1")
        .gnu(crate::tar_writer::GNU_NAME, format!("{gnu}\0").as_bytes())
        .file("short", "2")
        .symlink("link", "t".repeat(300))
        .hard_link("hard", &long)]);
    assert_eq!(fs::read_to_string(root.join(&long)).unwrap(), "1");
    assert_eq!(fs::read_to_string(root.join(gnu)).unwrap(), "2");
    assert_eq!(fs::read_to_string(root.join("hard")).unwrap(), "1");
    assert_eq!(fs::read_link(root.join("link")).unwrap(), PathBuf::from("t".repeat(300)));
}

#[test]
fn a_strict_umask_has_no_effect() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("archive");
    let layer = Tar::new().entry(Head::new(FILE, b"d/a", 0).mode(0o666), b"").end();
    fs::write(&archive, image("x:1", &[layer])).unwrap();
    // The umask applies to the whole process. nextest runs each test in its own process; under another runner,
    // concurrent tests would be affected for a moment only.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let store = sandbox_images::Store::open(&directory.path().join("store")).unwrap();
    let imported = store.import(&archive, None, &mut |_| {});
    rustix::process::umask(before);
    imported.unwrap();
    let root = store.resolve(&"x:1".parse().unwrap()).unwrap().root;
    assert_eq!((mode(&root.join("d/a")), mode(&root.join("d"))), (0o666, 0o755));
    let store_mode = fs::metadata(directory.path().join("store")).unwrap().permissions().mode();
    assert_eq!(store_mode & 0o777, 0o700);
}
