use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use chrono::{DateTime, Utc};
use sandbox_backends::snapshot::SnapshotReader;
use sandbox_core::{
    WorkspaceAccess, WorkspaceChoice, WorkspaceName, WorkspaceQuota, WorkspaceSize,
};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::directory::Directory;
use super::lock::{self, Lock};
use super::settings::Settings;
use super::{Claim, WorkspaceError, tar_export, tar_import};

/// The state of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its name.
    pub name: WorkspaceName,
    /// Its size.
    #[serde(flatten)]
    pub size: WorkspaceSize,
    /// Time of the last save.
    pub saved_at: DateTime<Utc>,
    /// Time of the last use.
    pub used_at: DateTime<Utc>,
    /// Whether an execution holds it for writing.
    pub in_use: bool,
}

/// The workspaces of a user, or of one of several owners.
#[derive(Clone, Debug)]
pub struct Workspaces {
    directory: Directory,
    quota: WorkspaceQuota,
    max_count: Option<u64>,
}

impl Workspaces {
    /// The workspaces of the user, in `$SANDBOX_RUN_WORKSPACES` or else in `sandbox-run/workspaces` below the user's data
    /// directory. `$SANDBOX_RUN_WORKSPACE_SIZE` is the quota of each. Creates nothing yet.
    pub fn of_user() -> Result<Self, WorkspaceError> {
        let settings = Settings::from_environment()?;
        Ok(Self::in_directory(&settings.directory).with_quota(settings.quota))
    }

    /// The workspaces in a directory that only this user can access. Creates nothing yet.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: Directory::at(directory),
            quota: WorkspaceQuota::default(),
            max_count: None,
        }
    }

    /// Sets the quota of each workspace. A workspace over its quota can still be read and emptied.
    #[must_use]
    pub fn with_quota(mut self, quota: WorkspaceQuota) -> Self {
        self.quota = quota;
        self
    }

    /// Sets the maximum number of workspaces of each owner.
    #[must_use]
    pub fn with_max_count(mut self, max_count: u64) -> Self {
        self.max_count = Some(max_count);
        self
    }

    /// The workspaces of one owner. Each owner has a namespace of its own.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> Self {
        Self { directory: self.directory.of_owner(owner), ..self.clone() }
    }

    /// The quota of each workspace.
    pub fn quota(&self) -> WorkspaceQuota {
        self.quota
    }

    /// All workspaces, sorted by name.
    pub fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        let mut found = Vec::new();
        for name in self.directory.names()? {
            match self.find(&name) {
                // Removed in the meantime.
                Err(WorkspaceError::NoSuchWorkspace(_)) => {}
                workspace => found.push(workspace?),
            }
        }
        Ok(found)
    }

    /// A workspace by name.
    pub fn find(&self, name: &WorkspaceName) -> Result<Workspace, WorkspaceError> {
        let path = self.directory.content(name);
        let mut file = self.open(name)?;
        let size = SnapshotReader::size_of(&mut file);
        let size = size.map_err(WorkspaceError::io("understand", &path))?.content;
        let saved_at = file.metadata().and_then(|found| found.modified());
        let saved_at = saved_at.map_err(WorkspaceError::io("look at", &path))?;
        let lock = self.directory.lock(name);
        let used_at = fs::metadata(&lock).and_then(|found| found.modified()).unwrap_or(saved_at);
        Ok(Workspace {
            name: name.clone(),
            size,
            saved_at: saved_at.into(),
            used_at: used_at.max(saved_at).into(),
            in_use: lock::is_locked(&lock),
        })
    }

    /// Removes a workspace that no execution writes to. Executions that read it keep their content.
    pub fn remove(&self, name: &WorkspaceName) -> Result<(), WorkspaceError> {
        // Check first, so that no lock file is created for a missing workspace.
        self.open(name)?;
        let lock = self.lock(name)?;
        let path = self.directory.content(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(WorkspaceError::io("remove", &path))?,
        }
        lock.remove()
    }

    /// Exports a workspace as a tar archive.
    pub fn export(&self, name: &WorkspaceName, into: impl Write) -> Result<(), WorkspaceError> {
        let path = self.directory.content(name);
        let content = self.open(name)?;
        tar_export::write(content, into).map_err(WorkspaceError::io("export", &path))
    }

    /// Imports a tar archive as a workspace, replacing an existing one. All or nothing.
    pub fn import(
        &self,
        name: &WorkspaceName,
        archive: impl Read,
    ) -> Result<Workspace, WorkspaceError> {
        self.directory.make()?;
        self.refuse_too_many(name)?;
        let lock = self.lock(name)?;
        let file = self.directory.temporary(name)?;
        let taken = tar_import::read(archive, file.as_file(), self.quota)
            .and_then(|()| self.put(name, file));
        if taken.is_err() && !self.directory.content(name).exists() {
            lock.remove()?;
            return taken.and_then(|()| self.find(name));
        }
        drop(lock);
        taken.and_then(|()| self.find(name))
    }

    /// Checks whether a workspace could be claimed now.
    pub fn check(&self, choice: &WorkspaceChoice) -> Result<(), WorkspaceError> {
        match choice.access {
            WorkspaceAccess::ReadOnly => self.open(&choice.name).map(drop),
            WorkspaceAccess::ReadWrite => {
                self.refuse_too_many(&choice.name)?;
                if lock::is_locked(&self.directory.lock(&choice.name)) {
                    return Err(WorkspaceError::InUse(choice.name.clone()));
                }
                Ok(())
            }
        }
    }

    /// Claims a workspace for an execution.
    pub(crate) fn claim(&self, choice: &WorkspaceChoice) -> Result<Claim, WorkspaceError> {
        Claim::new(self, choice)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Refuses a new workspace beyond the maximum number.
    pub(super) fn refuse_too_many(&self, name: &WorkspaceName) -> Result<(), WorkspaceError> {
        match self.max_count {
            Some(most) if !self.directory.content(name).exists() => {
                if self.directory.names()?.len() as u64 >= most {
                    return Err(WorkspaceError::TooMany(most));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes a file the content of a workspace.
    pub(super) fn put(
        &self,
        name: &WorkspaceName,
        file: NamedTempFile,
    ) -> Result<(), WorkspaceError> {
        // Serialize: otherwise two new workspaces could both take the last free one.
        let _number = Lock::wait(&self.directory.lock_of_number())?;
        self.refuse_too_many(name)?;
        self.directory.put(name, file)
    }

    fn lock(&self, name: &WorkspaceName) -> Result<Lock, WorkspaceError> {
        let lock = Lock::try_lock(&self.directory.lock(name))?;
        lock.ok_or_else(|| WorkspaceError::InUse(name.clone()))
    }

    fn open(&self, name: &WorkspaceName) -> Result<File, WorkspaceError> {
        let path = self.directory.content(name);
        match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(WorkspaceError::NoSuchWorkspace(name.clone()))
            }
            file => file.map_err(WorkspaceError::io("open", &path)),
        }
    }
}

#[cfg(test)]
mod tests;
