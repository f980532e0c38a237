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

/// One workspace, as it is kept now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// What it is called.
    pub name: WorkspaceName,
    /// How much it holds.
    #[serde(flatten)]
    pub size: WorkspaceSize,
    /// When it was written last.
    pub saved_at: DateTime<Utc>,
    /// When an execution used it last.
    pub used_at: DateTime<Utc>,
    /// Whether an execution has it that may replace it.
    pub in_use: bool,
}

/// The workspaces of a user, or of one owner where a process serves several.
#[derive(Clone, Debug)]
pub struct Workspaces {
    directory: Directory,
    quota: WorkspaceQuota,
    max_count: Option<u64>,
}

impl Workspaces {
    /// Those of the user. They lie in `$SANDBOX_RUN_WORKSPACES`, or else in `sandbox-run/workspaces` below
    /// the user's data directory; `$SANDBOX_RUN_WORKSPACE_SIZE` bounds each. Nothing is made yet.
    pub fn of_user() -> Result<Self, WorkspaceError> {
        let settings = Settings::from_environment()?;
        Ok(Self::in_directory(&settings.directory).with_quota(settings.quota))
    }

    /// Those in a certain directory, which belongs to this user alone. Nothing is made yet.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: Directory::at(directory),
            quota: WorkspaceQuota::default(),
            max_count: None,
        }
    }

    /// How much each may hold. One that holds more can be read and emptied.
    #[must_use]
    pub fn with_quota(mut self, quota: WorkspaceQuota) -> Self {
        self.quota = quota;
        self
    }

    /// How many there may be, of each owner.
    #[must_use]
    pub fn with_max_count(mut self, max_count: u64) -> Self {
        self.max_count = Some(max_count);
        self
    }

    /// Those of one owner. Nobody has a name in common with anybody else.
    #[must_use]
    pub fn of_owner(&self, owner: &str) -> Self {
        Self { directory: self.directory.of_owner(owner), ..self.clone() }
    }

    /// How much each may hold.
    pub fn quota(&self) -> WorkspaceQuota {
        self.quota
    }

    /// All of them, by name.
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

    /// One of them.
    pub fn find(&self, name: &WorkspaceName) -> Result<Workspace, WorkspaceError> {
        let path = self.directory.content(name);
        let mut file = self.open(name)?;
        let size = SnapshotReader::size_of(&mut file);
        let size = size.map_err(WorkspaceError::io("understand", &path))?.told;
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

    /// Removes one that nobody writes to. Executions that read it go on with what they have.
    pub fn remove(&self, name: &WorkspaceName) -> Result<(), WorkspaceError> {
        // Not to make a lock for what is not there.
        self.open(name)?;
        let lock = self.lock(name)?;
        let path = self.directory.content(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(WorkspaceError::io("remove", &path))?,
        }
        lock.remove()
    }

    /// Writes one as a tar archive.
    pub fn export(&self, name: &WorkspaceName, into: impl Write) -> Result<(), WorkspaceError> {
        let path = self.directory.content(name);
        let content = self.open(name)?;
        tar_export::write(content, into).map_err(WorkspaceError::io("export", &path))
    }

    /// Makes one of a tar archive, in place of one that may be there, if all of it can be taken.
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

    /// Why one could not be used now, without using it.
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

    /// Takes one for an execution.
    pub(crate) fn claim(&self, choice: &WorkspaceChoice) -> Result<Claim, WorkspaceError> {
        Claim::new(self, choice)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Refuses to make one more than there may be.
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
        // Two that are new could both find room for one.
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
