//! A tree of this very machine, packed by the `tar` of this machine, comes out as it is.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use crate::archives::{Files, config, gzip};
use crate::arena::{Arena, Snapshot, snapshot};

/// A tree as an archive, in one of the forms that `tar` has.
fn packed(tree: &Path, form: &str) -> Vec<u8> {
    let output = Command::new("tar")
        .args(["-c", &format!("--format={form}"), "--sort=name", "-C"])
        .arg(tree)
        .arg(".")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn without_what_is_not_kept(tree: Snapshot) -> Snapshot {
    let kept = |(path, (mode, links, time, content)): (_, (u32, u64, i64, Vec<u8>))| {
        let is_directory = mode & 0o170_000 == 0o040_000;
        let mode = if is_directory { mode & !0o6000 | 0o700 } else { mode & !0o6000 | 0o400 };
        // The time of a directory is when it was unpacked; the top is ours.
        let (links, time) = if is_directory { (0, 0) } else { (links, time) };
        (path, (mode, links, time, content))
    };
    let mut tree: Snapshot = tree.into_iter().map(kept).collect();
    tree.remove(Path::new(""));
    tree
}

fn comes_out_as_it_is(tree: &Path, form: &str) {
    let layer = packed(tree, form);
    let arena = Arena::new();
    let sent = gzip(&layer);
    arena.import(&Files::layout("x:1", &config(&[layer]), &[sent]).tar()).unwrap();
    let image = arena.resolve("x:1");
    let wanted = without_what_is_not_kept(snapshot(tree));
    let found = without_what_is_not_kept(snapshot(&image.root));
    assert_eq!(wanted.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (path, wanted) in &wanted {
        assert_eq!(&found[path], wanted, "{}", path.display());
    }
}

#[test]
fn a_real_tree_comes_out_as_it_is() {
    // Small, with links, and everybody may read them. Not every machine has all of them.
    let trees =
        ["/etc/alternatives", "/usr/share/perl5/Debconf", "/etc/init.d", "/usr/share/apport"];
    let mut tried = 0;
    for tree in trees.map(Path::new).into_iter().filter(|tree| tree.is_dir()) {
        for form in ["gnu", "posix"] {
            comes_out_as_it_is(tree, form);
        }
        tried += 1;
    }
    assert!(tried > 0, "this machine has none of {trees:?}");
}

#[test]
fn hard_links_and_odd_names_come_out_as_they_are() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    std::fs::create_dir_all(path("deep/er")).unwrap();
    std::fs::write(path("deep/er/file"), "content").unwrap();
    std::fs::hard_link(path("deep/er/file"), path("again")).unwrap();
    std::fs::write(path("ünïcode \n name"), "").unwrap();
    std::fs::write(path(&"long".repeat(50)), vec![7; 100_000]).unwrap();
    std::os::unix::fs::symlink("../../..", path("deep/link")).unwrap();
    assert_eq!(path("again").metadata().unwrap().nlink(), 2);
    for form in ["gnu", "posix"] {
        comes_out_as_it_is(place.path(), form);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Names are few and short, so that files meet directories of other files.
    #[test]
    fn any_tree_comes_out_as_it_is(
        files in proptest::collection::vec(("[ab](/[ab]){0,3}", 0..2000_usize, 0..8_u32), 0..12),
    ) {
        let place = tempfile::tempdir().unwrap();
        for (path, size, mode) in files {
            let path = place.path().join(path);
            if std::fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let made = std::fs::write(&path, vec![b'x'; size]);
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600 | mode);
                let _ = made.and_then(|()| std::fs::set_permissions(&path, mode));
            }
        }
        comes_out_as_it_is(place.path(), "gnu");
    }
}
