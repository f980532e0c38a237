use std::fmt;
use std::fs::File;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ByteSize, SkippedFile};

/// The name of a workspace: a directory that outlives executions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct WorkspaceName(String);

/// How an execution uses a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WorkspaceAccess {
    /// Changes are saved. Only one execution at a time may use a workspace this way.
    #[default]
    #[serde(rename = "rw")]
    ReadWrite,
    /// Changes are discarded. Any number of executions may use a workspace this way at the same
    /// time.
    #[serde(rename = "ro")]
    ReadOnly,
}

/// A workspace in a request: `NAME`, or `NAME:ro`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkspaceChoice {
    /// The workspace.
    pub name: WorkspaceName,
    /// How it is used.
    pub access: WorkspaceAccess,
}

/// A text that is not a workspace name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' is not a workspace: write a name of letters, digits and . _ - only, at most 64, a letter or \
     digit first, and :ro after it to keep nothing",
    text.escape_debug()
)]
pub struct InvalidWorkspace {
    text: String,
}

/// The maximum size of a workspace. Every directory entry counts as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceQuota {
    /// Bytes in its files.
    pub bytes: ByteSize,
    /// Files, directories and links.
    pub files: u64,
}

/// A workspace in a stage: its files are placed in the work directory before the stage's own.
#[derive(Debug)]
pub struct WorkspacePlan {
    /// The saved content, in the backends' snapshot format; `None` for a new workspace.
    pub content: Option<File>,
    /// Maximum size.
    pub quota: WorkspaceQuota,
    /// The file to write the new content to. Nothing is saved if it is `None`.
    pub kept: Option<File>,
}

/// What happened to a workspace in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceOutcome {
    /// Size of the new content, if it was written completely; otherwise it must not be saved.
    pub written: Option<WorkspaceSize>,
    /// Why the new content was not written.
    pub refusal: Option<String>,
    /// Files that a workspace cannot store and that were left out: pipes, sockets, devices.
    pub left_out: Vec<SkippedFile>,
}

/// Size of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceSize {
    /// Bytes in its files.
    pub bytes: u64,
    /// Files, directories and links.
    pub files: u64,
}

/// What a report contains about the workspace of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceReport {
    /// The workspace.
    pub name: WorkspaceName,
    /// How it was used.
    pub access: WorkspaceAccess,
    /// Whether the changes of the program were saved.
    pub saved: bool,
    /// Size of the saved content.
    #[serde(flatten)]
    pub size: WorkspaceSize,
    /// Why the changes were not saved, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Files that a workspace cannot store and that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<SkippedFile>,
}

const MAX_NAME_LEN: usize = 64;
/// Allows small files, and bounds the time that saving and restoring take.
const FILES_PER_MIB: u64 = 40;

impl WorkspaceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl WorkspaceQuota {
    /// A quota of this many bytes and 40 files for each MiB of them.
    pub fn of(bytes: ByteSize) -> Self {
        Self { bytes, files: (bytes.as_u64() >> 20).max(1) * FILES_PER_MIB }
    }
}

impl Default for WorkspaceQuota {
    fn default() -> Self {
        Self::of(ByteSize::mib(256))
    }
}

impl fmt::Display for WorkspaceQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} files", self.bytes, self.files)
    }
}

impl FromStr for WorkspaceName {
    type Err = InvalidWorkspace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins_well || text.len() > MAX_NAME_LEN || !text.chars().all(is_usual) {
            return Err(InvalidWorkspace { text: text.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for WorkspaceChoice {
    type Err = InvalidWorkspace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, access) = match text.split_once(':') {
            None => (text, WorkspaceAccess::ReadWrite),
            Some((name, "rw")) => (name, WorkspaceAccess::ReadWrite),
            Some((name, "ro")) => (name, WorkspaceAccess::ReadOnly),
            Some(_) => return Err(InvalidWorkspace { text: text.to_owned() }),
        };
        let name = name.parse().map_err(|_| InvalidWorkspace { text: text.to_owned() })?;
        Ok(Self { name, access })
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for WorkspaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.access {
            WorkspaceAccess::ReadWrite => write!(f, "{}", self.name),
            WorkspaceAccess::ReadOnly => write!(f, "{}:ro", self.name),
        }
    }
}

impl TryFrom<String> for WorkspaceName {
    type Error = InvalidWorkspace;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_a_plain_name_and_is_written_to_unless_said_otherwise() {
        for (text, access) in [
            ("job", WorkspaceAccess::ReadWrite),
            ("job-2.1_x:rw", WorkspaceAccess::ReadWrite),
            ("7:ro", WorkspaceAccess::ReadOnly),
        ] {
            let choice: WorkspaceChoice = text.parse().unwrap();
            assert_eq!(choice.access, access, "{text}");
            assert_eq!(choice.to_string().parse::<WorkspaceChoice>().unwrap(), choice);
        }
        let long = "a".repeat(65);
        for text in [
            "", ".", "..", ".x", "-x", "a/b", "a b", "a\0", "é", "a:", ":ro", "a:x", "a:ro:ro",
            &long,
        ] {
            assert!(text.parse::<WorkspaceChoice>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_quota_has_room_for_files_however_small_it_is() {
        assert_eq!(WorkspaceQuota::default().to_string(), "256M and 10240 files");
        assert_eq!(WorkspaceQuota::of(ByteSize::bytes(1)).files, 40);
    }
}
