//! The directories that make up one cgroup: a single one on v2, one in each hierarchy on v1, all
//! under the same name. Made together, removed together.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::file::Directory;
use super::name;
use super::{CgroupError, Leftover, Removal};

/// How long a removal waits for dying members. A killed process leaves its cgroup only after its
/// memory is freed, which takes milliseconds for a large one.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(1);

/// A fresh name can be taken only if another PID namespace uses the same directories.
const NAME_ATTEMPTS: usize = 16;

/// A cgroup of this process. Dropping it removes the directories if they are empty.
#[derive(Debug)]
pub(crate) struct Group {
    name: String,
    members: Vec<Member>,
    removed: AtomicBool,
}

#[derive(Debug)]
struct Member {
    parent: Arc<Directory>,
    directory: Arc<Directory>,
}

impl Group {
    /// Creates one directory in each parent. Nothing is left if one of them fails.
    pub(crate) fn make(parents: &[Arc<Directory>]) -> Result<Group, CgroupError> {
        for _ in 1..NAME_ATTEMPTS {
            match Group::make_named(&name::fresh()?, parents) {
                Err(error) if error.errno() == Some(Errno::EXIST) => {}
                outcome => return outcome,
            }
        }
        Group::make_named(&name::fresh()?, parents)
    }

    pub(crate) fn make_named(name: &str, parents: &[Arc<Directory>]) -> Result<Group, CgroupError> {
        // The group exists from the start, so that dropping it undoes what was done so far.
        let mut group = Group {
            name: name.to_owned(),
            members: Vec::with_capacity(parents.len()),
            removed: AtomicBool::new(false),
        };
        for parent in parents {
            let directory = Arc::new(parent.make_child(name)?);
            group.members.push(Member { parent: Arc::clone(parent), directory });
        }
        Ok(group)
    }

    /// All directories, in order.
    pub(crate) fn directories(&self) -> Vec<Arc<Directory>> {
        self.members.iter().map(|member| Arc::clone(&member.directory)).collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directory in the parent with this index.
    pub(crate) fn directory(&self, place: usize) -> &Directory {
        &self.members[place].directory
    }

    pub(crate) fn parent(&self, place: usize) -> &Directory {
        &self.members[place].parent
    }

    /// Descriptors of all `cgroup.procs`, for writing.
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        self.members
            .iter()
            .map(|member| {
                let file = member.directory.open_file("cgroup.procs", OFlags::WRONLY)?;
                Ok(file.into_descriptor())
            })
            .collect()
    }

    /// The members of any of the directories: a process that was stopped while joining is in some
    /// of them only.
    pub(crate) fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        let mut processes = Vec::new();
        for member in &self.members {
            processes.extend(member.directory.processes()?);
        }
        processes.sort_unstable();
        processes.dedup();
        Ok(processes)
    }

    pub(crate) fn removals(&self) -> Result<Vec<Removal>, CgroupError> {
        self.members
            .iter()
            .map(|member| {
                Ok(Removal {
                    parent: member.parent.duplicate()?,
                    name: CString::new(self.name.as_str()).expect("our names hold no zero byte"),
                })
            })
            .collect()
    }

    pub(crate) fn remove(&self) -> Result<(), CgroupError> {
        self.remove_until(Instant::now() + REMOVAL_DEADLINE)
    }

    /// Removes all directories, even if one fails, and then reports those that stayed.
    ///
    /// Cached pages of files on disk keep a removed memory cgroup alive inside the kernel;
    /// anonymous memory and files on a removed tmpfs do not. A sandbox writes only to the latter,
    /// so `memory.force_empty`, which takes a millisecond, is not needed.
    fn remove_until(&self, deadline: Instant) -> Result<(), CgroupError> {
        let mut left = Vec::new();
        for Member { parent, directory } in &self.members {
            if let Err(errno) = remove_one(parent, &self.name, deadline) {
                left.push(Leftover {
                    path: directory.path().to_owned(),
                    errno,
                    processes: directory.processes().unwrap_or_default(),
                });
            }
        }
        if left.is_empty() {
            self.removed.store(true, Ordering::Relaxed);
            Ok(())
        } else {
            Err(CgroupError::LeftBehind(left))
        }
    }
}

fn remove_one(parent: &Directory, name: &str, deadline: Instant) -> Result<(), Errno> {
    let mut pause = Duration::from_micros(100);
    loop {
        let Err(error) = parent.remove_child(name) else {
            return Ok(());
        };
        match error.errno() {
            // Another process with a `Removal` was faster.
            Some(Errno::NOENT) => return Ok(()),
            Some(Errno::BUSY) if Instant::now() < deadline => {
                // v1 has no event for the exit of the last member, so poll.
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            errno => return Err(errno.unwrap_or(Errno::IO)),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !*self.removed.get_mut() {
            // Callers that need the outcome call `remove`. This is for early returns; what is still
            // in use is swept later.
            let _ = self.remove_until(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(folder: &std::path::Path) -> Vec<Arc<Directory>> {
        ["memory", "pids"]
            .map(|name| {
                std::fs::create_dir(folder.join(name)).unwrap();
                Arc::new(Directory::open(&folder.join(name)).unwrap())
            })
            .into()
    }

    #[test]
    fn a_group_that_cannot_be_made_whole_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let parents = parents(folder.path());
        std::fs::create_dir(folder.path().join("pids/taken")).unwrap();
        let error = Group::make_named("taken", &parents).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::EXIST));
        assert!(!folder.path().join("memory/taken").exists());
        assert!(folder.path().join("pids/taken").exists(), "it was not ours to remove");
    }

    #[test]
    fn what_cannot_be_removed_is_named_and_the_rest_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::make_named("mine", &parents(folder.path())).unwrap();
        let obstacle = folder.path().join("memory/mine/obstacle");
        std::fs::create_dir(&obstacle).unwrap();
        let error = group.remove().unwrap_err().to_string();
        assert!(error.contains("memory/mine") && !error.contains("pids/mine"), "{error}");
        assert!(!folder.path().join("pids/mine").exists());
        std::fs::remove_dir(obstacle).unwrap();
        group.remove().unwrap();
        assert!(!folder.path().join("memory/mine").exists());
    }

    #[test]
    fn dropping_a_group_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::make(&parents(folder.path())).unwrap();
        let path = group.directory(1).path().to_owned();
        assert!(path.exists());
        drop(group);
        assert!(!path.exists());
    }
}
