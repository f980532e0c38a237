use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::{KeyBuilder, StoreError};

/// Metadata of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerManifest {
    /// Description.
    pub about: String,
    /// Creation time.
    pub created: DateTime<Utc>,
    /// Number of files.
    pub files: u64,
    /// Total size of the files.
    pub bytes: u64,
    /// A hash of the paths, modes and contents of all files.
    hash: String,
}

/// Metadata of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    mode: u32,
    bytes: u64,
    hash: [u8; 32],
}

impl Contents {
    pub(super) fn new(mode: u32, contents: &[u8]) -> Self {
        Self { mode, bytes: contents.len() as u64, hash: Sha256::digest(contents).into() }
    }

    /// Permissions: readable by all, writable by the owner.
    pub(super) fn mode(executable: bool) -> u32 {
        if executable { 0o755 } else { 0o644 }
    }
}

impl LayerManifest {
    pub(super) fn of(about: &str, files: &BTreeMap<String, Contents>) -> Self {
        Self {
            about: about.to_owned(),
            created: Utc::now().trunc_subsecs(0),
            files: files.len() as u64,
            bytes: files.values().map(|contents| contents.bytes).sum(),
            hash: hash(files),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let text = toml::to_string(self).map_err(io::Error::other);
        text.and_then(|text| fs::write(path, text)).map_err(StoreError::io("write", path))
    }

    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        let text = fs::read_to_string(path).map_err(StoreError::io("read", path))?;
        toml::from_str(&text).map_err(|error| StoreError::damaged(path, error.message()))
    }

    /// Compares a directory tree with this manifest.
    pub(super) fn compare(&self, tree: &Path) -> Result<(), StoreError> {
        let mut files = BTreeMap::new();
        read_tree(tree, "", &mut files)?;
        if hash(&files) == self.hash {
            Ok(())
        } else {
            Err(StoreError::damaged(tree, "its files differ from the manifest"))
        }
    }
}

/// The map is sorted, so the order in which files were written or found has no effect.
fn hash(files: &BTreeMap<String, Contents>) -> String {
    let key = files.iter().fold(KeyBuilder::new("tree"), |key, (path, contents)| {
        key.part("path", path)
            .part("mode", contents.mode.to_le_bytes())
            .part("contents", contents.hash)
    });
    key.finish().to_string()
}

fn read_tree(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Contents>,
) -> Result<(), StoreError> {
    for entry in fs::read_dir(directory).map_err(StoreError::io("list", directory))? {
        let entry = entry.map_err(StoreError::io("list", directory))?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(StoreError::damaged(&path, "its name is not text"));
        };
        // This metadata does not follow links.
        let found = entry.metadata().map_err(StoreError::io("read the metadata of", &path))?;
        if found.is_dir() {
            read_tree(&path, &format!("{prefix}{name}/"), files)?;
        } else if found.is_file() {
            let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
            let contents = Contents::new(found.permissions().mode() & 0o7777, &bytes);
            files.insert(format!("{prefix}{name}"), contents);
        } else {
            return Err(StoreError::damaged(&path, "it is neither a file nor a directory"));
        }
    }
    Ok(())
}
