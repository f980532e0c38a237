//! Files on the host while containers of this process run: the agent, lists of users, and which
//! containers were requested.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sandbox_core::BackendError;
use sandbox_linux::agent::AGENT;
use sandbox_linux::cgroup::Hierarchy;

use crate::error::failed;
use crate::oci::ids::Ids;
use crate::shared_directory::{enter, leave, make_directory, write};

/// Removed at the next boot, like containers.
const STATE_DIRECTORY: &str = "/run/sandbox-run-docker";

/// Prefix of files that record requested containers.
const PENDING: &str = "pending-";

/// The directory of this process.
pub(super) struct State {
    pub(super) directory: PathBuf,
    number: AtomicU64,
    pub(super) ids: Arc<Ids>,
}

impl State {
    pub(super) fn open() -> Result<Self, BackendError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let opened = || -> io::Result<Self> {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let prefix = Hierarchy::own_prefix().map_err(io::Error::other)?;
            let name = format!("{prefix}{number}");
            let directory = enter(Path::new(STATE_DIRECTORY), &name)?;
            write(&directory.join("agent"), AGENT, 0o755)?;
            make_directory(&directory.join("empty"))?;
            let ids = Arc::new(crate::oci::claim_ids(&name)?);
            Ok(Self { directory, number: AtomicU64::new(0), ids })
        };
        opened().map_err(|error| failed("make a directory for containers", error))
    }

    /// Names a container and records that it is about to be requested from the Engine.
    pub(super) fn announce(&self) -> io::Result<Pending> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.owner());
        let path = self.directory.join(format!("{PENDING}{name}"));
        write(&path, b"", 0o600)?;
        Ok(Pending { path, name })
    }

    /// The owner label of this process's containers.
    pub(super) fn owner(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// An empty directory.
    pub(super) fn empty(&self) -> PathBuf {
        self.directory.join("empty")
    }

    pub(super) fn agent(&self) -> PathBuf {
        self.directory.join("agent")
    }

    /// Writes `passwd` and `group`, in which the program's user has its usual name, and `hosts`.
    /// They are for one container at a time, which has this ID.
    pub(super) fn lists_with(&self, id: u32, user: u32) -> io::Result<PathBuf> {
        let lists = self.directory.join(format!("user-{id}"));
        if lists.exists() {
            return Ok(lists);
        }
        make_directory(&lists)?;
        let users = format!(
            "root:x:0:0:root:/:/usr/sbin/nologin\n\
             sandbox:x:{user}:{user}:sandbox:/tmp:/bin/sh\n\
             nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
        );
        write(&lists.join("passwd"), users.as_bytes(), 0o644)?;
        let groups = format!("root:x:0:\nsandbox:x:{user}:\nnogroup:x:65534:\n");
        write(&lists.join("group"), groups.as_bytes(), 0o644)?;
        let hosts = "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n";
        write(&lists.join("hosts"), hosts.as_bytes(), 0o644)?;
        Ok(lists)
    }
}

/// The record of a requested container, which the Engine may or may not have created.
pub(super) struct Pending {
    path: PathBuf,
    name: String,
}

impl Pending {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What an ended process left.
pub(super) struct Leftover {
    directory: PathBuf,
    /// Containers that it had requested, which the Engine may still be creating.
    pub(super) pending: Vec<String>,
}

impl Leftover {
    pub(super) fn all() -> Vec<Self> {
        let entries = fs::read_dir(STATE_DIRECTORY).into_iter().flatten().flatten();
        let is_left = |entry: &fs::DirEntry| {
            entry.file_name().to_str().is_some_and(Hierarchy::is_left_by_the_dead)
        };
        entries.filter(is_left).map(|entry| Self::in_directory(entry.path())).collect()
    }

    fn in_directory(directory: PathBuf) -> Self {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let pending = names.filter_map(|name| name.strip_prefix(PENDING).map(str::to_owned));
        Self { pending: pending.collect(), directory }
    }

    /// Removes the record, when everything else is removed.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir_all(self.directory);
    }
}

impl Drop for State {
    fn drop(&mut self) {
        leave(&self.directory);
    }
}
