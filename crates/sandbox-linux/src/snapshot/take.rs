use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use sandbox_core::{InputFile, SkippedFile, WorkspaceQuota, WorkspaceSize};

use super::MAX_DEPTH;
use super::format::{Entry, Kind, MAX_PATH_LEN, SnapshotWriter};
use crate::collect::open_beneath;

/// Maximum number of left-out files that are listed.
const MAX_LEFT_OUT: usize = 100;

/// The result of taking a snapshot.
#[derive(Debug, Default)]
pub struct Taken {
    /// Its size.
    pub size: WorkspaceSize,
    /// Why the directory cannot be saved. What was written is then invalid.
    pub refusal: Option<String>,
    /// Pipes, sockets and devices.
    pub left_out: Vec<SkippedFile>,
}

/// Writes everything below a work directory to a file, after every process of the sandbox is dead.
///
/// `own` are files of the request: if unchanged, they are not part of the workspace. An error is an
/// internal failure; the content can only be a reason to refuse.
pub fn take(
    work: BorrowedFd<'_>,
    into: &File,
    quota: WorkspaceQuota,
    own: &[&InputFile],
) -> io::Result<Taken> {
    let mut walk = Walk {
        writer: SnapshotWriter::new(into)?,
        quota,
        own: own.iter().map(|file| (file.path.as_str().as_bytes(), *file)).collect(),
        left_out: Vec::new(),
        pending: Vec::new(),
    };
    let walked = match open_beneath(work, c".", OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(top) => walk.directory(&top, &[], 0),
        Err(error) => Err(Stop::Refuse(format!("it could not be opened: {error}"))),
    };
    let Walk { writer, left_out, .. } = walk;
    match walked {
        Ok(()) => {
            let size = writer.finish()?.content;
            Ok(Taken { size, refusal: None, left_out })
        }
        Err(Stop::Refuse(reason)) => {
            Ok(Taken { size: WorkspaceSize::default(), refusal: Some(reason), left_out })
        }
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Why a walk stopped early.
enum Stop {
    /// The content cannot be saved.
    Refuse(String),
    /// An internal failure.
    Failed(io::Error),
}

struct Walk<'a> {
    writer: SnapshotWriter<&'a File>,
    quota: WorkspaceQuota,
    /// By path.
    own: BTreeMap<&'a [u8], &'a InputFile>,
    left_out: Vec<SkippedFile>,
    /// Directories around files of the request: saved only if they contain something else.
    pending: Vec<Entry>,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &OwnedFd, prefix: &[u8], depth: usize) -> Result<(), Stop> {
        for name in self.names(directory, prefix)? {
            let mut path = prefix.to_vec();
            path.extend_from_slice(name.to_bytes());
            if path.len() > MAX_PATH_LEN {
                return Err(refuse(prefix, "a path below it is too long"));
            }
            self.name(directory, &name, path, depth)?;
        }
        Ok(())
    }

    /// The entries of a directory, sorted, so that the result depends only on the content.
    fn names(&self, directory: &OwnedFd, prefix: &[u8]) -> Result<Vec<CString>, Stop> {
        let unreadable = |error| refuse(prefix, &format!("it could not be listed: {error}"));
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_owned();
            if name.as_c_str() != c"." && name.as_c_str() != c".." {
                names.push(name);
            }
            // The request's own files are here too, and do not count.
            if names.len() as u64 > self.quota.files + self.own.len() as u64 {
                return Err(self.too_much());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn name(
        &mut self,
        directory: &OwnedFd,
        name: &CStr,
        path: Vec<u8>,
        depth: usize,
    ) -> Result<(), Stop> {
        // Check the type of what was opened, not of the name: O_PATH has no side effects.
        let place = open_beneath(directory.as_fd(), name, OFlags::PATH | OFlags::NOFOLLOW);
        let looked = place.and_then(|place| Ok((fstat(&place)?, place)));
        let (stat, place) = looked
            .map_err(|error| refuse(&path, &format!("it could not be looked at: {error}")))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth >= MAX_DEPTH => Err(refuse(&path, "it lies too deep")),
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let below = open(directory, name, &place, &stat, flags)
                    .map_err(|error| refuse(&path, &format!("it could not be opened: {error}")))?;
                let mut entry = entry(path, Kind::Directory, 0, &stat);
                let waiting = self.pending.len();
                if self.holds_own_files(&entry.path) {
                    self.pending.push(entry.clone());
                } else {
                    self.add(&entry, &mut io::empty())?;
                }
                entry.path.push(b'/');
                self.directory(&below, &entry.path, depth + 1)?;
                self.pending.truncate(waiting);
                Ok(())
            }
            FileType::RegularFile => self.file(directory, name, path, &place, &stat),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&place, c"", Vec::new())
                    .map_err(|error| refuse(&path, &format!("it could not be read: {error}")))?;
                let target = target.as_bytes();
                let entry = entry(path, Kind::Link, target.len() as u64, &stat);
                self.add(&entry, &mut { target })
            }
            FileType::Fifo => self.leave_out(&path, "it is a pipe"),
            FileType::Socket => self.leave_out(&path, "it is a socket"),
            _ => self.leave_out(&path, "it is a device"),
        }
    }

    fn file(
        &mut self,
        directory: &OwnedFd,
        name: &CStr,
        path: Vec<u8>,
        place: &OwnedFd,
        stat: &Stat,
    ) -> Result<(), Stop> {
        let unreadable = |error: &dyn std::fmt::Display| format!("it could not be read: {error}");
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let entry = entry(path, Kind::File, size, stat);
        // Before a byte of it is read: a sparse file may report a size larger than any disk.
        let own = self.own.get(entry.path.as_slice()).copied();
        if own.is_none_or(|own| own.contents.len() as u64 != size) {
            self.check(&entry)?;
        }
        // Non-blocking, in case it is not a regular file any more; reading it then fails.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = open(directory, name, place, stat, flags)
            .map_err(|error| refuse(&entry.path, &unreadable(&error)))?;
        let mut file = File::from(file);
        if let Some(own) = own.filter(|own| own.contents.len() as u64 == size) {
            let mut contents = Vec::with_capacity(own.contents.len());
            (&mut file)
                .take(size)
                .read_to_end(&mut contents)
                .map_err(|error| refuse(&entry.path, &unreadable(&error)))?;
            if contents == own.contents {
                return Ok(());
            }
            return self.add(&entry, &mut contents.as_slice());
        }
        self.add(&entry, &mut file)
    }

    fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<(), Stop> {
        for directory in std::mem::take(&mut self.pending) {
            self.check(&directory)?;
            self.writer.add(&directory, &mut io::empty()).map_err(Stop::Failed)?;
        }
        self.check(entry)?;
        self.writer.add(entry, content).map_err(Stop::Failed)
    }

    fn holds_own_files(&self, path: &[u8]) -> bool {
        let inside = [path, b"/"].concat();
        let next = self.own.range(inside.as_slice()..).next();
        next.is_some_and(|(path, _)| path.starts_with(&inside))
    }

    fn check(&self, entry: &Entry) -> Result<(), Stop> {
        let size = self.writer.size().plus(entry);
        let fits = size.room <= self.quota.bytes.as_u64() && size.content.files <= self.quota.files;
        if fits { Ok(()) } else { Err(self.too_much()) }
    }

    fn too_much(&self) -> Stop {
        Stop::Refuse(format!("it holds more than {}", self.quota))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is one of several things to do with a name")]
    fn leave_out(&mut self, path: &[u8], reason: &str) -> Result<(), Stop> {
        if self.left_out.len() < MAX_LEFT_OUT {
            let reason = reason.to_owned();
            self.left_out.push(SkippedFile { path: printable(path), reason });
        }
        Ok(())
    }
}

fn entry(path: Vec<u8>, kind: Kind, size: u64, stat: &Stat) -> Entry {
    Entry {
        path,
        kind,
        // Never the set-user-ID, set-group-ID or sticky bit.
        mode: stat.st_mode & 0o777,
        modified: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        size,
    }
}

/// Opens what `place` refers to, even if its owner may not read it: without root this process is
/// the owner, and permissions apply to it.
fn open(
    directory: &OwnedFd,
    name: &CStr,
    place: &OwnedFd,
    stat: &Stat,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    match open_beneath(directory.as_fd(), name, flags) {
        Err(Errno::ACCESS) => {
            // Through the descriptor: no name is resolved again.
            let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o700);
            rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), mode)?;
            open_beneath(directory.as_fd(), name, flags)
        }
        opened => opened,
    }
}

fn refuse(path: &[u8], reason: &str) -> Stop {
    let path = printable(path);
    Stop::Refuse(if path.is_empty() { reason.to_owned() } else { format!("'{path}': {reason}") })
}

fn printable(path: &[u8]) -> String {
    String::from_utf8_lossy(path).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::format::SnapshotReader;
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use sandbox_core::ByteSize;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    const QUOTA: WorkspaceQuota = WorkspaceQuota { bytes: ByteSize::mib(1), files: 20 };

    type Make = fn(&Path);

    fn taken(folder: &Path, quota: WorkspaceQuota, own: &[&InputFile]) -> (Taken, Vec<Entry>) {
        let work = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let mut file = tempfile::tempfile().unwrap();
        let taken = take(work.unwrap().as_fd(), &file, quota, own).unwrap();
        let mut entries = Vec::new();
        if taken.refusal.is_none() {
            assert_eq!(SnapshotReader::size_of(&mut file).unwrap().content, taken.size);
            let mut reader = SnapshotReader::new(file).unwrap();
            while let Some(entry) = reader.next_entry().unwrap() {
                entries.push(entry);
            }
        }
        (taken, entries)
    }

    fn names(entries: &[Entry]) -> Vec<String> {
        entries.iter().map(|entry| printable(&entry.path)).collect()
    }

    #[test]
    fn files_directories_and_links_are_kept_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::create_dir(place("d")).unwrap();
        std::fs::write(place("d/set"), b"1").unwrap();
        std::fs::set_permissions(place("d/set"), PermissionsExt::from_mode(0o6755)).unwrap();
        for (name, target) in [("a", "/etc"), ("b", "../../.."), ("c", "/proc/self/root")] {
            symlink(target, place(name)).unwrap();
        }
        std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"x\n\xff")), b"").unwrap();
        let (taken, entries) = taken(folder.path(), QUOTA, &[]);
        assert_eq!(taken.refusal, None);
        assert_eq!(names(&entries), ["a", "b", "c", "d", "d/set", "x\\n\u{fffd}"]);
        assert!(entries[..3].iter().all(|entry| entry.kind == Kind::Link), "{entries:?}");
        assert_eq!(entries[4].mode, 0o755);
    }

    #[test]
    fn pipes_and_sockets_are_left_out_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        mkfifoat(CWD, folder.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        let (taken, entries) = taken(folder.path(), QUOTA, &[]);
        assert!(taken.refusal.is_none() && entries.is_empty(), "{entries:?}");
        assert_eq!(taken.left_out.len(), 2);
    }

    #[test]
    fn what_does_not_fit_is_refused_as_a_whole() {
        let make: [(&str, Make); 5] = [
            ("a sparse file", |folder| {
                File::create(folder.join("x")).unwrap().set_len(1 << 40).unwrap();
            }),
            ("hard links", |folder| {
                std::fs::write(folder.join("0"), vec![0; 600_000]).unwrap();
                std::fs::hard_link(folder.join("0"), folder.join("1")).unwrap();
            }),
            ("many files", |folder| {
                for number in 0..21 {
                    std::fs::write(folder.join(number.to_string()), b"").unwrap();
                }
            }),
            ("small files that take pages", |folder| {
                std::fs::write(folder.join("large"), vec![0; 1 << 20]).unwrap();
                std::fs::write(folder.join("small"), b"1").unwrap();
            }),
            ("deep directories", |folder| {
                let deep = (0..70).fold(folder.to_owned(), |path, _| path.join("d"));
                std::fs::create_dir_all(deep).unwrap();
            }),
        ];
        for (name, make) in make {
            let folder = tempfile::tempdir().unwrap();
            make(folder.path());
            let quota = if name == "deep directories" { WorkspaceQuota::default() } else { QUOTA };
            let (taken, _) = taken(folder.path(), quota, &[]);
            assert!(taken.refusal.is_some(), "{name} was kept");
        }
    }

    #[test]
    fn files_of_the_request_are_kept_only_if_they_were_changed() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["same", "changed", "longer", "a/same", "b/same"].map(|name| InputFile {
            path: name.parse().unwrap(),
            contents: b"before".to_vec(),
            executable: false,
        });
        for directory in ["a", "b"] {
            std::fs::create_dir(folder.path().join(directory)).unwrap();
        }
        for (name, contents) in [
            ("same", "before"),
            ("changed", "after!"),
            ("longer", "before!"),
            ("a/same", "before"),
            ("b/same", "before"),
            ("b/more", ""),
        ] {
            std::fs::write(folder.path().join(name), contents).unwrap();
        }
        let own: Vec<&InputFile> = files.iter().collect();
        let (_, entries) = taken(folder.path(), QUOTA, &own);
        assert_eq!(names(&entries), ["b", "b/more", "changed", "longer"]);
    }

    #[test]
    fn what_its_owner_may_not_read_is_kept_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(closed.join("file"), b"x").unwrap();
        for path in [closed.join("file"), closed.clone()] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
        }
        let (taken, entries) = taken(folder.path(), QUOTA, &[]);
        std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(taken.refusal, None);
        let modes: Vec<u32> = entries.iter().map(|entry| entry.mode).collect();
        assert_eq!(
            (names(&entries), modes),
            (vec!["closed".into(), "closed/file".into()], vec![0, 0])
        );
    }
}
