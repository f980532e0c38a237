use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox_core::WorkspaceName;
use sha2::{Digest, Sha256};

use super::WorkspaceError;

const CONTENT: &str = "content";
const LOCKS: &str = "locks";
const TEMPORARY: &str = "temporary";
const OWNERS: &str = "owners";

/// The directory with the workspaces of one owner. It is created with the first workspace.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: Arc<Path>,
}

impl Directory {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The directory of one owner, named by a hash, which is a valid name for every owner.
    pub(super) fn of_owner(&self, owner: &str) -> Self {
        let hash = Sha256::digest(owner.as_bytes());
        let hash = hash.iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"));
        Self { path: self.path.join(OWNERS).join(hash).into() }
    }

    /// Creates missing directories, and checks that only this user can access them.
    pub(super) fn make(&self) -> Result<(), WorkspaceError> {
        for path in [
            self.path.to_path_buf(),
            self.path.join(CONTENT),
            self.path.join(LOCKS),
            self.path.join(TEMPORARY),
        ] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .map_err(WorkspaceError::io("create the directory", &path))?;
            let found =
                path.metadata().map_err(WorkspaceError::io("read the metadata of", &path))?;
            if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o077 != 0 {
                return Err(WorkspaceError::NotPrivate(path));
            }
        }
        Ok(())
    }

    pub(super) fn content(&self, name: &WorkspaceName) -> PathBuf {
        self.path.join(CONTENT).join(name.as_str())
    }

    pub(super) fn lock(&self, name: &WorkspaceName) -> PathBuf {
        self.path.join(LOCKS).join(name.as_str())
    }

    /// Lock file for creating workspaces. No workspace can have this name.
    pub(super) fn lock_of_number(&self) -> PathBuf {
        self.path.join(LOCKS).join(".number")
    }

    /// The names of all workspaces, sorted.
    pub(super) fn names(&self) -> Result<Vec<WorkspaceName>, WorkspaceError> {
        let path = self.path.join(CONTENT);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(WorkspaceError::io("list", &path))?,
        };
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut names: Vec<WorkspaceName> = entries.flatten().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// A temporary file for new content. It is removed unless `put` makes it the content. The caller holds the lock, so files
    /// that others left under this name are abandoned and are removed first.
    pub(super) fn temporary(
        &self,
        name: &WorkspaceName,
    ) -> Result<tempfile::NamedTempFile, WorkspaceError> {
        let path = self.path.join(TEMPORARY);
        let prefix = format!("{name}:");
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                // Errors are ignored: the file only takes space, and the next writer tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
        tempfile::Builder::new()
            .prefix(&prefix)
            .tempfile_in(&path)
            .map_err(WorkspaceError::io("write to", &path))
    }

    /// Makes a file the content of a workspace, durably.
    pub(super) fn put(
        &self,
        name: &WorkspaceName,
        file: tempfile::NamedTempFile,
    ) -> Result<(), WorkspaceError> {
        let path = self.content(name);
        let put = file.as_file().sync_all().and_then(|()| {
            file.persist(&path)?;
            File::open(self.path.join(CONTENT))?.sync_all()
        });
        put.map_err(WorkspaceError::io("write", &path))
    }
}
