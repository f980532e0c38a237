//! A store beside a canary directory that no image may modify.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use sandbox_core::with_causes;
use sandbox_images::{Image, Limits, Reference, Store};

pub(crate) struct Harness {
    directory: tempfile::TempDir,
    pub(crate) store: Store,
    before: Snapshot,
    limits: Limits,
}

/// The files of a tree, with mode, link count, modification time and content.
pub(crate) type Snapshot = BTreeMap<PathBuf, (u32, u64, i64, Vec<u8>)>;

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let canary = directory.path().join("canary");
        fs::create_dir_all(canary.join("directory/below")).unwrap();
        fs::write(canary.join("file"), "alive").unwrap();
        fs::write(canary.join("directory/file"), "alive too").unwrap();
        symlink("file", canary.join("link")).unwrap();
        let store =
            Store::open(&directory.path().join("store")).unwrap().with_limits(limits.clone());
        let before = snapshot(&canary);
        Self { directory, store, before, limits }
    }

    /// Replaces the store by an empty one.
    pub(crate) fn reset_store(&mut self) {
        let limits = self.limits.clone();
        fs::remove_dir_all(self.store.path()).unwrap();
        self.store = Store::open(&self.path().join("store")).unwrap().with_limits(limits);
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory that no image may modify.
    pub(crate) fn canary(&self) -> PathBuf {
        self.path().join("canary")
    }

    pub(crate) fn canary_is_unharmed(&self) -> bool {
        snapshot(&self.canary()) == self.before
    }

    /// Imports an archive. An error is one line with all causes.
    pub(crate) fn import(&self, archive: &[u8]) -> Result<(), String> {
        let path = self.path().join("archive");
        fs::write(&path, archive).unwrap();
        let imported = self.store.import(&path, None, &mut |_| {});
        imported.map(drop).map_err(|error| with_causes(&error))
    }

    pub(crate) fn resolve(&self, name: &str) -> Image {
        self.store.resolve(&reference(name)).unwrap()
    }

    /// The number of files in each directory of the store, except the locks.
    pub(crate) fn contents(&self) -> BTreeMap<&'static str, usize> {
        let count = |name| fs::read_dir(self.store.path().join(name)).unwrap().count();
        ["blobs", "roots", "references", "temporary"].map(|name| (name, count(name))).into()
    }

    pub(crate) fn store_is_empty(&self) -> bool {
        self.contents().values().all(|count| *count == 0)
    }
}

pub(crate) fn reference(name: &str) -> Reference {
    name.parse().unwrap()
}

pub(crate) fn snapshot(top: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut pending = vec![top.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            std::os::unix::ffi::OsStrExt::as_bytes(fs::read_link(&path).unwrap().as_os_str())
                .to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        let name = path.strip_prefix(top).unwrap().to_owned();
        found.insert(name, (metadata.mode(), metadata.nlink(), metadata.mtime(), content));
    }
    found
}

#[test]
fn every_change_to_the_canary_is_detected() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 8] = [
        ("a new file", |canary| fs::write(canary.join("new"), "").unwrap()),
        ("a new file deep inside", |canary| {
            fs::write(canary.join("directory/below/new"), "").unwrap();
        }),
        ("other content", |canary| fs::write(canary.join("file"), "alivE").unwrap()),
        ("a removed file", |canary| fs::remove_file(canary.join("directory/file")).unwrap()),
        ("another mode", |canary| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
            fs::set_permissions(canary.join("file"), mode).unwrap();
        }),
        ("a hard link from elsewhere", |canary| {
            fs::hard_link(canary.join("file"), canary.with_file_name("thief")).unwrap();
        }),
        ("another link", |canary| {
            fs::remove_file(canary.join("link")).unwrap();
            symlink("directory", canary.join("link")).unwrap();
        }),
        ("another time", |canary| {
            let file = fs::File::options().write(true).open(canary.join("file")).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }),
    ];
    for (name, change) in changes {
        let harness = Harness::new();
        assert!(harness.canary_is_unharmed(), "before {name}");
        change(&harness.canary());
        assert!(!harness.canary_is_unharmed(), "{name} was not detected");
    }
}
