//! Files of the work directory while programs run: whatever a program puts in the way of a path, nothing outside the
//! directory is touched, and nothing blocks. The caller acts as the programs' user.

use std::ffi::{CString, OsStr, c_int, c_long};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sandbox_protocol::agent::{AgentEvent, AgentRequest};
use sandbox_protocol::exec::ExecFile;

use crate::channel::{send, unexpected};
use crate::sys::check_fd;

const O_DIRECTORY: u64 = if cfg!(target_arch = "aarch64") { 0o40_000 } else { 0o200_000 };
const O_NOFOLLOW: i32 = if cfg!(target_arch = "aarch64") { 0o100_000 } else { 0o400_000 };
const O_NONBLOCK: u64 = 0o4000;
const O_CLOEXEC: u64 = 0o2_000_000;
const O_PATH: u64 = 0o10_000_000;

/// The kernel's `struct open_how`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// The work directory, open.
pub(crate) struct WorkDirectory(OwnedFd);

impl WorkDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path).map(|directory| Self(directory.into()))
    }

    /// Carries out one request and sends the answer.
    pub(crate) fn handle(
        &self,
        request: &AgentRequest<'_>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let result = match request {
            AgentRequest::PutFile(file) => self.put(file),
            AgentRequest::RemoveFile(path) => self.remove(path),
            AgentRequest::GetFile { max_bytes, path } => match self.get(path, *max_bytes) {
                Ok(contents) => return send(output, &AgentEvent::FileContents(&contents)),
                Err(error) => Err(error),
            },
            AgentRequest::ListDirectory(path) => match self.list(path) {
                Ok(entries) => return send_entries(&entries, output),
                Err(error) => Err(error),
            },
            _ => return Err(unexpected()),
        };
        send(
            output,
            &match result {
                Ok(()) => AgentEvent::FileDone,
                Err(error) => AgentEvent::FileUnavailable(error.to_string()),
            },
        )
    }

    fn put(&self, file: &ExecFile<'_>) -> io::Result<()> {
        let path = Path::new(file.path);
        let parent = self.make_parent(path)?;
        let target = within(&parent, path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
        match fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode).custom_flags(O_NOFOLLOW);
        options.open(target)?.write_all(file.contents)
    }

    fn get(&self, path: &[u8], max_bytes: u64) -> io::Result<Vec<u8>> {
        // Non-blocking: it may be a pipe.
        let file = File::from(open_beneath(&self.0, path, O_NONBLOCK)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut contents = Vec::new();
        if metadata.len() <= max_bytes {
            // It may grow meanwhile.
            file.take(max_bytes.saturating_add(1)).read_to_end(&mut contents)?;
        }
        if metadata.len().max(contents.len() as u64) > max_bytes {
            return Err(io::Error::other(format!("larger than {max_bytes} bytes")));
        }
        Ok(contents)
    }

    fn list(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, fs::Metadata)>> {
        let path = if path.is_empty() { b"." } else { path };
        let directory = open_beneath(&self.0, path, O_DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(itself(&directory))? {
            let entry = entry?;
            // It may be gone by now.
            if let Ok(metadata) = entry.metadata() {
                entries.push((entry.file_name().as_bytes().to_vec(), metadata));
            }
        }
        Ok(entries)
    }

    fn remove(&self, path: &[u8]) -> io::Result<()> {
        let path = Path::new(OsStr::from_bytes(path));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.parent(path)?;
        let target = within(&parent, name);
        if fs::symlink_metadata(&target)?.is_dir() {
            // Follows no link, whatever happens at the same time.
            fs::remove_dir_all(target)
        } else {
            fs::remove_file(target)
        }
    }

    fn parent(&self, path: &Path) -> io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                open_beneath(&self.0, parent.as_os_str().as_bytes(), O_PATH | O_DIRECTORY)
            }
            _ => self.0.try_clone(),
        }
    }

    /// The directory above a path. It and those above it are created.
    fn make_parent(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut directory = self.0.try_clone()?;
        for name in path.parent().into_iter().flat_map(Path::iter) {
            let mut builder = fs::DirBuilder::new();
            match builder.mode(0o755).create(within(&directory, name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => directory = open_beneath(&directory, name.as_bytes(), O_PATH | O_DIRECTORY)?,
            }
        }
        Ok(directory)
    }
}

fn send_entries(entries: &[(Vec<u8>, fs::Metadata)], output: &mut impl Write) -> io::Result<()> {
    for (path, metadata) in entries {
        let (mode, size) = (metadata.mode(), metadata.size());
        send(output, &AgentEvent::FileEntry { mode, size, path })?;
    }
    send(output, &AgentEvent::FileListEnd)
}

/// The path of an open directory.
fn itself(directory: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", directory.as_raw_fd()).into()
}

/// The path of a name in an open directory. The kernel resolves nothing else than the name.
fn within(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    itself(directory).join(name)
}

/// Opens what is there below the directory, for reading unless the flags say otherwise. A symbolic link anywhere in the
/// path is an error.
fn open_beneath(directory: &OwnedFd, path: &[u8], flags: u64) -> io::Result<OwnedFd> {
    const SYS_OPENAT2: c_long = 437;
    const RESOLVE_NO_MAGICLINKS: u64 = 2;
    const RESOLVE_NO_SYMLINKS: u64 = 4;
    const RESOLVE_BENEATH: u64 = 8;
    let path = CString::new(path)?;
    let how = OpenHow {
        flags: flags | O_CLOEXEC,
        mode: 0,
        resolve: RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    let directory: c_int = directory.as_raw_fd();
    // SAFETY: openat2(2) reads a terminated path and an `open_how` of the size it is told; both outlive the call.
    let opened = unsafe {
        syscall(SYS_OPENAT2, directory, path.as_ptr(), &raw const how, size_of::<OpenHow>())
    };
    // SAFETY: the call has just opened the descriptor, so nothing else owns it.
    unsafe { check_fd(opened) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process;

    use sandbox_protocol::Message as _;

    use super::*;
    use crate::channel::receive;

    /// A directory with a work directory and a directory outside, removed at the end of the test.
    struct Directories(PathBuf);

    impl Directories {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("sandbox-files.{}.{name}", process::id()));
            fs::create_dir(&path).unwrap();
            fs::create_dir(path.join("work")).unwrap();
            fs::create_dir(path.join("outside")).unwrap();
            fs::write(path.join("outside/secret"), "untouched").unwrap();
            symlink("../outside", path.join("work/link")).unwrap();
            symlink("../outside/secret", path.join("work/file-link")).unwrap();
            Self(path)
        }

        /// The answers to a request.
        fn handle(&self, request: &AgentRequest<'_>) -> Vec<Vec<u8>> {
            let mut output = Vec::new();
            let work = WorkDirectory::open(&self.0.join("work")).unwrap();
            work.handle(request, &mut output).unwrap();
            let mut rest = output.as_slice();
            std::iter::from_fn(|| receive(&mut rest).unwrap()).collect()
        }

        fn put(&self, path: &str) -> bool {
            let file = ExecFile { path, contents: b"new", executable: true };
            is_done(&self.handle(&AgentRequest::PutFile(file)))
        }
    }

    impl Drop for Directories {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn is_done(answers: &[Vec<u8>]) -> bool {
        match AgentEvent::decode(&answers[0]) {
            Ok(AgentEvent::FileDone) => true,
            Ok(AgentEvent::FileUnavailable(_)) => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_are_put_with_their_directories_and_replace_others() {
        let directories = Directories::new("put");
        let work = directories.0.join("work");
        for _ in 0..2 {
            assert!(directories.put("a/b/file"));
        }
        assert_eq!(fs::read(work.join("a/b/file")).unwrap(), b"new");
        assert_eq!(
            fs::metadata(work.join("a/b/file")).unwrap().permissions().mode() & 0o777,
            0o755
        );
        assert!(!directories.put("a/b"));
        assert!(!directories.put("a/b/file/below"));
    }

    #[test]
    fn a_link_of_the_program_leads_nowhere() {
        let directories = Directories::new("links");
        assert!(!directories.put("link/secret"));
        assert!(!directories.put("link/new"));
        // The link itself is replaced.
        assert!(directories.put("file-link"));
        let get = |path: &str| {
            let answers =
                directories.handle(&AgentRequest::GetFile { max_bytes: 99, path: path.as_bytes() });
            matches!(AgentEvent::decode(&answers[0]), Ok(AgentEvent::FileContents(_)))
        };
        assert!(get("file-link"));
        assert!(!get("link/secret"));
        assert!(!get("../outside/secret"));
        let listed = directories.handle(&AgentRequest::ListDirectory(b"link"));
        assert!(!is_done(&listed));
        assert!(!is_done(&directories.handle(&AgentRequest::RemoveFile(b"link/secret"))));
        assert!(is_done(&directories.handle(&AgentRequest::RemoveFile(b"link"))));
        let outside = directories.0.join("outside");
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"untouched");
        assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let directories = Directories::new("get");
        let work = directories.0.join("work");
        fs::write(work.join("file"), "12345").unwrap();
        let fifo = process::Command::new("mkfifo").arg(work.join("pipe")).status();
        assert!(fifo.is_ok_and(|status| status.success()));
        let get = |path: &[u8], max_bytes| {
            let answers = directories.handle(&AgentRequest::GetFile { max_bytes, path });
            match AgentEvent::decode(&answers[0]) {
                Ok(AgentEvent::FileContents(contents)) => Some(contents.to_vec()),
                Ok(AgentEvent::FileUnavailable(_)) => None,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(get(b"file", 5), Some(b"12345".to_vec()));
        assert_eq!(get(b"file", 4), None);
        for path in [&b"pipe"[..], b".", b"missing"] {
            assert_eq!(get(path, 5), None);
        }
    }

    #[test]
    fn a_directory_is_listed_and_removed_with_what_is_in_it() {
        let directories = Directories::new("list");
        assert!(directories.put("a/b"));
        let listed = directories.handle(&AgentRequest::ListDirectory(b""));
        let names = listed.iter().filter_map(|event| match AgentEvent::decode(event) {
            Ok(AgentEvent::FileEntry { path, mode, .. }) => Some((path.to_vec(), mode & 0o170_000)),
            Ok(AgentEvent::FileListEnd) => None,
            other => panic!("{other:?}"),
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        let link = 0o120_000;
        let expected = [(&b"a"[..], 0o040_000), (b"file-link", link), (b"link", link)]
            .map(|(name, mode)| (name.to_vec(), mode));
        assert_eq!(names, expected);
        assert!(is_done(&directories.handle(&AgentRequest::RemoveFile(b"a"))));
        assert!(!is_done(&directories.handle(&AgentRequest::RemoveFile(b"a"))));
        assert!(!directories.0.join("work/a").exists());
    }
}
