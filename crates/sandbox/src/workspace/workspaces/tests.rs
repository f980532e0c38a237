use super::*;
use crate::TarError;
use sandbox_core::{ByteSize, SkippedFile, WorkspaceOutcome};
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;
use tar::{Builder, EntryType, Header};

fn name(text: &str) -> WorkspaceName {
    text.parse().unwrap()
}

fn choice(text: &str) -> WorkspaceChoice {
    text.parse().unwrap()
}

/// An archive of these names: a kind, a path as it is written, and contents or a link's target.
fn archive(entries: &[(EntryType, &[u8], &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, path, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o7640);
        header.set_mtime(1_000_000_000);
        // By hand: the crate would not write a path that leads outside.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path);
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        let data: &[u8] = if is_link { &[] } else { content };
        if is_link {
            header.set_link_name_literal(content).unwrap();
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn exported(workspaces: &Workspaces, workspace: &str) -> Vec<(EntryType, Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    workspaces.export(&name(workspace), &mut bytes).unwrap();
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        if let Some(target) = entry.link_name_bytes() {
            content = target.into_owned();
        }
        (entry.header().entry_type(), entry.path_bytes().into_owned(), content)
    };
    archive.entries().unwrap().map(read).collect()
}

#[test]
fn an_archive_goes_in_and_comes_out_the_same() {
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::in_directory(&root.path().join("new/workspaces"));
    assert_eq!(workspaces.list().unwrap(), []);
    let long = [b"n".repeat(200), b"/".to_vec(), b"m".repeat(200)].concat();
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    header.set_cksum();
    let long_path = String::from_utf8(long.clone()).unwrap();
    builder.append_data(&mut header, &long_path, &b"abc"[..]).unwrap();
    let mut bytes = archive(&[
        (EntryType::Directory, b"./", b""),
        (EntryType::Regular, b"./a/b\n\xff", b"hello"),
        (EntryType::Symlink, b"a/link", b"../../etc/passwd"),
    ]);
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(builder.into_inner().unwrap());
    let taken = workspaces.import(&name("w"), Cursor::new(bytes)).unwrap();
    assert_eq!(taken.size, WorkspaceSize { bytes: 8, files: 5 });
    assert!(!taken.in_use);
    let found = exported(&workspaces, "w");
    let expected: &[(EntryType, &[u8], &[u8])] = &[
        (EntryType::Directory, b"a", b""),
        (EntryType::Regular, b"a/b\n\xff", b"hello"),
        (EntryType::Symlink, b"a/link", b"../../etc/passwd"),
        (EntryType::Directory, &long[..200], b""),
        (EntryType::Regular, &long, b"abc"),
    ];
    let found: Vec<(EntryType, &[u8], &[u8])> = found
        .iter()
        .map(|(kind, path, content)| {
            (*kind, path.strip_suffix(b"/").unwrap_or(path.as_slice()), content.as_slice())
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(workspaces.list().unwrap(), [workspaces.find(&name("w")).unwrap()]);
}

#[test]
fn an_archive_that_reaches_outside_or_lies_is_refused_and_nothing_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let quota = WorkspaceQuota { bytes: ByteSize::kib(64), files: 10 };
    let workspaces = Workspaces::in_directory(&root.path().join("w")).with_quota(quota);
    let file = EntryType::Regular;
    let deep = b"d/".repeat(40);
    let many: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    let many: Vec<_> = many.iter().map(|path| (file, path.as_bytes(), &b""[..])).collect();
    let large = vec![0; 100_000];
    for (what, entries) in [
        ("up", vec![(file, &b"../x"[..], &b""[..])]),
        ("up later", vec![(file, b"a/../../x", b"")]),
        ("absolute", vec![(file, b"/etc/x", b"")]),
        ("hard link", vec![(file, b"a", b""), (EntryType::Link, b"b", b"a")]),
        ("device", vec![(EntryType::Char, b"a", b"")]),
        ("block device", vec![(EntryType::Block, b"a", b"")]),
        ("pipe", vec![(EntryType::Fifo, b"a", b"")]),
        ("sparse", vec![(EntryType::GNUSparse, b"a", b"")]),
        ("through a link", vec![(EntryType::Symlink, b"a", b"/etc"), (file, b"a/x", b"")]),
        ("through a file", vec![(file, b"a", b""), (file, b"a/x", b"")]),
        ("twice", vec![(file, b"a", b"1"), (file, b"./a", b"2")]),
        ("link to nothing", vec![(EntryType::Symlink, b"a", b"")]),
        ("deep", vec![(file, &deep, b"")]),
        ("many", many),
        ("large", vec![(file, b"a", &large)]),
    ] {
        let refused = workspaces.import(&name("w"), Cursor::new(archive(&entries)));
        assert!(matches!(refused, Err(WorkspaceError::Tar(_))), "{what}: {refused:?}");
        assert!(workspaces.list().unwrap().is_empty(), "{what} was kept");
    }
    for (what, bytes) in [
        ("garbage", vec![b'x'; 2048]),
        ("cut off", archive(&[(file, b"a", b"0123456789")])[..515].to_vec()),
        ("a size that is not there", {
            let mut bytes = archive(&[(file, b"a", b"")]);
            bytes[124..136].copy_from_slice(b"77777777777\0");
            bytes
        }),
    ] {
        let refused = workspaces.import(&name("w"), Cursor::new(bytes));
        assert!(matches!(refused, Err(WorkspaceError::Tar(_))), "{what}: {refused:?}");
    }
    let left = walk(root.path());
    assert!(left.iter().all(|path| path.is_dir() || path.ends_with(".number")), "{left:?}");
}

#[test]
fn a_refused_archive_leaves_what_was_there() {
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::in_directory(&root.path().join("w"));
    let import = |entries: &[(EntryType, &[u8], &[u8])]| {
        workspaces.import(&name("w"), Cursor::new(archive(entries)))
    };
    import(&[(EntryType::Regular, b"a", b"1")]).unwrap();
    let error = import(&[(EntryType::Regular, b"../a", b"2")]).unwrap_err();
    assert!(matches!(error, WorkspaceError::Tar(TarError::Entry { .. })), "{error:?}");
    assert_eq!(exported(&workspaces, "w")[0].2, b"1");
}

#[test]
fn one_writes_and_the_others_read_what_was_kept_last() {
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::in_directory(&root.path().join("w"));
    let missing = workspaces.claim(&choice("w:ro")).unwrap_err();
    assert!(matches!(missing, WorkspaceError::NoSuchWorkspace(_)), "{missing:?}");
    let bytes = || Cursor::new(archive(&[(EntryType::Regular, b"a", b"1")]));
    workspaces.import(&name("w"), bytes()).unwrap();
    let writer = workspaces.claim(&choice("w")).unwrap();
    assert!(workspaces.find(&name("w")).unwrap().in_use);
    for refused in [
        workspaces.claim(&choice("w")).map(drop),
        workspaces.remove(&name("w")),
        workspaces.import(&name("w"), bytes()).map(drop),
    ] {
        assert!(matches!(refused, Err(WorkspaceError::InUse(_))), "{refused:?}");
    }
    let reader = workspaces.claim(&choice("w:ro")).unwrap();
    assert!(reader.plan().unwrap().kept.is_none());
    let left_out = vec![SkippedFile { path: "p".into(), reason: "it is a pipe".into() }];
    let stopped = WorkspaceOutcome { written: None, refusal: None, left_out };
    let report = writer.settle(Some(&stopped)).unwrap();
    assert!(!report.saved && report.reason.is_some() && report.left_out.len() == 1);
    assert_eq!(report.size, WorkspaceSize { bytes: 1, files: 1 });
    workspaces.remove(&name("w")).unwrap();
    assert!(reader.plan().unwrap().content.is_some());
    let gone = workspaces.remove(&name("w"));
    assert!(matches!(gone, Err(WorkspaceError::NoSuchWorkspace(_))), "{gone:?}");
}

#[test]
fn owners_have_names_of_their_own_and_a_number_of_workspaces() {
    let root = tempfile::tempdir().unwrap();
    let all = Workspaces::in_directory(&root.path().join("w")).with_max_count(1);
    let bytes = || Cursor::new(archive(&[]));
    for owner in ["ada", "../ada", ""] {
        let own = all.of_owner(owner);
        assert!(own.list().unwrap().is_empty(), "{owner:?} sees another's");
        own.import(&name("w"), bytes()).unwrap();
        let more = own.import(&name("v"), bytes());
        assert!(matches!(more, Err(WorkspaceError::TooMany(1))), "{more:?}");
        let more = own.claim(&choice("v")).map(drop);
        assert!(matches!(more, Err(WorkspaceError::TooMany(1))), "{more:?}");
    }
    assert!(all.list().unwrap().is_empty());
}

#[test]
fn what_a_dead_writer_left_is_removed_by_the_next() {
    let root = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::in_directory(root.path());
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o700)).unwrap();
    workspaces.directory.make().unwrap();
    let temporary = root.path().join("temporary");
    for file in ["w:dead", "v:alive"] {
        std::fs::write(temporary.join(file), "").unwrap();
    }
    workspaces.import(&name("w"), Cursor::new(archive(&[]))).unwrap();
    let left = [temporary.join("w:dead").exists(), temporary.join("v:alive").exists()];
    assert_eq!(left, [false, true]);
}

#[test]
fn a_place_that_others_can_look_into_is_refused() {
    let root = tempfile::tempdir().unwrap();
    std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let refused = Workspaces::in_directory(root.path()).claim(&choice("w")).unwrap_err();
    assert!(matches!(refused, WorkspaceError::NotPrivate(_)), "{refused:?}");
}

fn walk(path: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            found.extend(walk(&entry.unwrap().path()));
        }
    }
    found
}
