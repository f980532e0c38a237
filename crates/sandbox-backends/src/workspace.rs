//! Restores a workspace into a sandbox and saves it afterwards.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Bound;
use std::os::fd::BorrowedFd;

use sandbox_core::{
    BackendError, ByteSize, Ending, InputFile, StageOutcome, StagePlan, WorkspaceOutcome,
    WorkspacePlan,
};
use sandbox_linux::snapshot::{Kind, SnapshotReader, take};
use sandbox_protocol::exec::WorkspaceMount;

use crate::error::failed;

/// The allocation unit of tmpfs.
const PAGE: u64 = 4096;

/// The size of the work directory: the quota of the workspace, and room for the files of the
/// request, which do not count against it.
pub(crate) fn mount_of(plan: &StagePlan) -> Result<Option<WorkspaceMount>, BackendError> {
    let Some(workspace) = &plan.sandbox.workspace else {
        return Ok(None);
    };
    let (mut bytes, mut inodes) = (workspace.quota.bytes.as_u64(), workspace.quota.files);
    if let Some(mut content) = workspace.content.as_ref() {
        let size = SnapshotReader::size_of(&mut content).map_err(unreadable)?;
        // It may have been saved under a larger quota.
        bytes = bytes.max(size.room);
        inodes = inodes.max(size.content.files);
        refuse_clashes(content, &plan.sandbox.all_files().collect::<Vec<_>>())?;
    }
    for file in plan.sandbox.all_files() {
        bytes += (file.contents.len() as u64).div_ceil(PAGE) * PAGE;
        inodes += file.path.components().count() as u64;
    }
    let has_content = workspace.content.is_some();
    Ok(Some(WorkspaceMount { bytes, inodes, has_content }))
}

/// The maximum file size on any of the program's file systems.
pub(crate) fn largest_file(plan: &StagePlan) -> ByteSize {
    let disk = plan.sandbox.limits.disk();
    plan.sandbox.workspace.as_ref().map_or(disk, |workspace| disk.max(workspace.quota.bytes))
}

/// Saves what a program left, if it ended by itself, and adds the result to the outcome. One that was
/// killed may have left an inconsistent state.
pub(crate) fn conclude(
    work: BorrowedFd<'_>,
    plan: &StagePlan,
    outcome: StageOutcome,
) -> Result<StageOutcome, BackendError> {
    let Some(workspace) = &plan.sandbox.workspace else {
        return Ok(outcome);
    };
    let has_ended = matches!(outcome.ending, Ending::Exited(_) | Ending::Signaled(_));
    let Some(kept) = workspace.kept.as_ref().filter(|_| has_ended) else {
        let nothing = WorkspaceOutcome { written: None, refusal: None, left_out: Vec::new() };
        return Ok(StageOutcome { workspace: Some(nothing), ..outcome });
    };
    let known = known_files(workspace)?;
    let is_own = |file: &&InputFile| !known.contains(file.path.as_str().as_bytes());
    let own: Vec<&InputFile> = plan.sandbox.all_files().filter(is_own).collect();
    let taken = take(work, kept, workspace.quota, &own)
        .map_err(|error| failed("keep the workspace", error))?;
    let written = taken.refusal.is_none().then_some(taken.size);
    let ending = if written.is_some() { outcome.ending } else { Ending::TooMuchForWorkspace };
    let saved = WorkspaceOutcome { written, refusal: taken.refusal, left_out: taken.left_out };
    Ok(StageOutcome { ending, workspace: Some(saved), ..outcome })
}

/// The files that a workspace contained before: they stay part of it even if the request replaced
/// them.
fn known_files(workspace: &WorkspacePlan) -> Result<BTreeSet<Vec<u8>>, BackendError> {
    let mut known = BTreeSet::new();
    if let Some(content) = &workspace.content {
        let mut reader = SnapshotReader::new(content).map_err(unreadable)?;
        while let Some(entry) = reader.next_entry().map_err(unreadable)? {
            if entry.kind != Kind::Directory {
                known.insert(entry.path);
            }
        }
    }
    Ok(known)
}

/// A file of the request may replace a saved file, but not a directory, and its parents must be
/// directories.
fn refuse_clashes(content: &File, files: &[&InputFile]) -> Result<(), BackendError> {
    let places: BTreeSet<&[u8]> = files.iter().map(|file| file.path.as_str().as_bytes()).collect();
    let mut reader = SnapshotReader::new(content).map_err(unreadable)?;
    while let Some(entry) = reader.next_entry().map_err(unreadable)? {
        let clash = if entry.kind == Kind::Directory {
            places.get(entry.path.as_slice()).copied()
        } else {
            let inside = [entry.path.as_slice(), b"/"].concat();
            let from = (Bound::Included(inside.as_slice()), Bound::Unbounded);
            let next = places.range::<[u8], _>(from).next().copied();
            next.filter(|path| path.starts_with(&inside))
        };
        if let Some(file) = clash {
            let path = String::from_utf8_lossy(&entry.path).escape_debug().to_string();
            let is = if entry.kind == Kind::Directory { "a directory" } else { "no directory" };
            return Err(BackendError::Refused(format!(
                "the file '{}' cannot be placed: '{path}' in the workspace is {is}",
                String::from_utf8_lossy(file)
            )));
        }
    }
    Ok(())
}

fn unreadable(error: std::io::Error) -> BackendError {
    failed("read the workspace", error)
}
