use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use sandbox_core::RelativePath;

use super::super::StoreError;
use super::manifest::{Contents, LayerManifest};

/// The start of the year 2000, 10957 days after the epoch, as the time of all files: the same files make the same layer whenever they are
/// written, and archives can hold this time, unlike the epoch's.
const FILE_TIME: Duration = Duration::from_hours(10_957 * 24);

/// Readable by all: inside, the program has another user id than the writer. On the host, the mode of the store keeps
/// other users out.
const DIRECTORY: u32 = 0o755;

/// Writes the files of a layer below a new directory.
///
/// No other process uses the directory, and it contains only files and directories, so no path leads through a link.
#[derive(Debug)]
pub(crate) struct LayerWriter {
    tree: PathBuf,
    written: RefCell<Written>,
}

#[derive(Debug, Default)]
struct Written {
    directories: BTreeSet<PathBuf>,
    files: BTreeMap<String, Contents>,
}

impl LayerWriter {
    pub(super) fn begin(tree: PathBuf) -> Result<Self, StoreError> {
        make_directory(&tree)?;
        let directories = BTreeSet::from([tree.clone()]);
        Ok(Self { tree, written: Written { directories, ..Written::default() }.into() })
    }

    /// Writes a file and its parent directories. Each path must be written once only.
    pub(crate) fn file(
        &self,
        path: &RelativePath,
        contents: &[u8],
        executable: bool,
    ) -> Result<(), StoreError> {
        let mut written = self.written.borrow_mut();
        let (names, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let mut place = self.tree.clone();
        for name in names.split('/').filter(|name| !name.is_empty()) {
            place.push(name);
            if !written.directories.contains(&place) {
                make_directory(&place)?;
                written.directories.insert(place.clone());
            }
        }
        place.push(name);
        let mode = Contents::mode(executable);
        write_file(&place, contents, mode)?;
        written.files.insert(path.as_str().to_owned(), Contents::new(mode, contents));
        Ok(())
    }

    /// Sets the times of the directories and returns the manifest.
    pub(super) fn finish(self, about: &str) -> Result<LayerManifest, StoreError> {
        let written = self.written.into_inner();
        for directory in &written.directories {
            let set = File::open(directory)
                .and_then(|opened| opened.set_modified(UNIX_EPOCH + FILE_TIME));
            set.map_err(StoreError::io("set the time of", directory))?;
        }
        Ok(LayerManifest::of(about, &written.files))
    }
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    let failed = StoreError::io("create the directory", path);
    // Set the mode after creation, so that the umask has no effect.
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(DIRECTORY)))
        .map_err(failed)
}

fn write_file(path: &Path, contents: &[u8], mode: u32) -> Result<(), StoreError> {
    let failed = StoreError::io("write", path);
    let mut options = File::options();
    let opened = options.write(true).create_new(true).open(path);
    opened
        .and_then(|mut file| {
            file.write_all(contents)?;
            file.set_permissions(Permissions::from_mode(mode))?;
            file.set_modified(UNIX_EPOCH + FILE_TIME)
        })
        .map_err(failed)
}
