//! Trees of this host, packed by its `tar`, are unpacked unchanged.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use crate::archives::{Files, config, gzip};
use crate::harness::{Harness, Snapshot, snapshot};

/// Packs a tree, in one of the formats of `tar`.
fn pack(tree: &Path, format: &str) -> Vec<u8> {
    let output = Command::new("tar")
        .args(["-c", &format!("--format={format}"), "--sort=name", "-C"])
        .arg(tree)
        .arg(".")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Drops what unpacking does not keep.
fn normalized(tree: Snapshot) -> Snapshot {
    let normalize = |(path, (mode, links, time, content)): (_, (u32, u64, i64, Vec<u8>))| {
        let is_directory = mode & 0o170_000 == 0o040_000;
        let mode = if is_directory { mode & !0o6000 | 0o700 } else { mode & !0o6000 | 0o400 };
        // The time of a directory is that of the unpacking; the mode of the root is not the image's.
        let (links, time) = if is_directory { (0, 0) } else { (links, time) };
        (path, (mode, links, time, content))
    };
    let mut tree: Snapshot = tree.into_iter().map(normalize).collect();
    tree.remove(Path::new(""));
    tree
}

fn check_unpacked_unchanged(tree: &Path, format: &str) {
    let layer = pack(tree, format);
    let harness = Harness::new();
    let sent = gzip(&layer);
    harness.import(&Files::layout("x:1", &config(&[layer]), &[sent]).tar()).unwrap();
    let image = harness.resolve("x:1");
    let expected = normalized(snapshot(tree));
    let found = normalized(snapshot(&image.root));
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, expected) in &expected {
        assert_eq!(&found[path], expected, "{}", path.display());
    }
}

#[test]
fn a_real_tree_is_unpacked_unchanged() {
    // Small trees with links, readable by everyone. Not every host has all of them.
    let trees =
        ["/etc/alternatives", "/usr/share/perl5/Debconf", "/etc/init.d", "/usr/share/apport"];
    let mut tried = 0;
    for tree in trees.map(Path::new).into_iter().filter(|tree| tree.is_dir()) {
        for format in ["gnu", "posix"] {
            check_unpacked_unchanged(tree, format);
        }
        tried += 1;
    }
    assert!(tried > 0, "this host has none of {trees:?}");
}

#[test]
fn hard_links_and_unusual_names_are_unpacked_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("deep/er")).unwrap();
    std::fs::write(path("deep/er/file"), "content").unwrap();
    std::fs::hard_link(path("deep/er/file"), path("again")).unwrap();
    std::fs::write(path("ünïcode \n name"), "").unwrap();
    std::fs::write(path(&"long".repeat(50)), vec![7; 100_000]).unwrap();
    std::os::unix::fs::symlink("../../..", path("deep/link")).unwrap();
    assert_eq!(path("again").metadata().unwrap().nlink(), 2);
    for format in ["gnu", "posix"] {
        check_unpacked_unchanged(directory.path(), format);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Names are few and short, so that files and directories collide.
    #[test]
    fn any_tree_is_unpacked_unchanged(
        files in proptest::collection::vec(("[ab](/[ab]){0,3}", 0..2000_usize, 0..8_u32), 0..12),
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (path, size, mode) in files {
            let path = directory.path().join(path);
            if std::fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let made = std::fs::write(&path, vec![b'x'; size]);
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600 | mode);
                let _ = made.and_then(|()| std::fs::set_permissions(&path, mode));
            }
        }
        check_unpacked_unchanged(directory.path(), "gnu");
    }
}
