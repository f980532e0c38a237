use std::fs::File;
use std::io;

use sandbox_backends::snapshot::SnapshotReader;
use sandbox_core::{
    WorkspaceAccess, WorkspaceChoice, WorkspaceOutcome, WorkspacePlan, WorkspaceReport,
    WorkspaceSize,
};
use tempfile::NamedTempFile;

use super::directory::Directory;
use super::lock::{self, Lock};
use super::{WorkspaceError, Workspaces};

/// A workspace claimed by one execution.
#[derive(Debug)]
pub(crate) struct Claim {
    directory: Directory,
    choice: WorkspaceChoice,
    workspaces: Workspaces,
    content: Option<File>,
    size: WorkspaceSize,
    /// The new content and the lock, if the execution may write.
    writing: Option<(NamedTempFile, Lock)>,
}

impl Claim {
    /// Claims a workspace for an execution. Does not wait: a workspace that another execution writes to is refused.
    pub(super) fn new(
        workspaces: &Workspaces,
        choice: &WorkspaceChoice,
    ) -> Result<Self, WorkspaceError> {
        let directory = workspaces.directory().clone();
        let name = &choice.name;
        let writing = match choice.access {
            WorkspaceAccess::ReadWrite => {
                directory.make()?;
                workspaces.refuse_too_many(name)?;
                let lock = Lock::try_lock(&directory.lock(name))?;
                let lock = lock.ok_or_else(|| WorkspaceError::InUse(name.clone()))?;
                lock::touch(&directory.lock(name));
                Some((directory.temporary(name)?, lock))
            }
            WorkspaceAccess::ReadOnly => {
                lock::touch(&directory.lock(name));
                None
            }
        };
        let path = directory.content(name);
        let mut content = match File::open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(WorkspaceError::io("open", &path)(error)),
        };
        if content.is_none() && writing.is_none() {
            return Err(WorkspaceError::NoSuchWorkspace(name.clone()));
        }
        let size = match &mut content {
            Some(file) => {
                let size = SnapshotReader::size_of(file);
                size.map_err(WorkspaceError::io("parse", &path))?.content
            }
            None => WorkspaceSize::default(),
        };
        let (choice, workspaces) = (choice.clone(), workspaces.clone());
        Ok(Self { directory, choice, workspaces, content, size, writing })
    }

    /// The workspace in a stage plan.
    pub(crate) fn plan(&self) -> Result<WorkspacePlan, WorkspaceError> {
        let path = self.directory.content(&self.choice.name);
        let copy = |file: &File| file.try_clone().map_err(WorkspaceError::io("use", &path));
        Ok(WorkspacePlan {
            content: self.content.as_ref().map(copy).transpose()?,
            quota: self.workspaces.quota(),
            kept: self.writing.as_ref().map(|(file, _)| copy(file.as_file())).transpose()?,
        })
    }

    /// Saves the new content, if the stage wrote one, and reports the result.
    pub(crate) fn settle(
        self,
        outcome: Option<&WorkspaceOutcome>,
    ) -> Result<WorkspaceReport, WorkspaceError> {
        let mut report = WorkspaceReport {
            name: self.choice.name.clone(),
            access: self.choice.access,
            saved: false,
            size: self.size,
            reason: outcome.and_then(|outcome| outcome.refusal.clone()),
            left_out: outcome.map_or_else(Vec::new, |outcome| outcome.left_out.clone()),
        };
        let Some((file, lock)) = self.writing else {
            return Ok(report);
        };
        if let Some(size) = outcome.and_then(|outcome| outcome.written) {
            self.workspaces.put(&self.choice.name, file)?;
            (report.saved, report.size) = (true, size);
        } else {
            report.reason.get_or_insert_with(|| "the program did not end by itself".to_owned());
            if self.content.is_none() {
                // The workspace was never created: leave no lock file.
                lock.remove()?;
            }
        }
        Ok(report)
    }
}
