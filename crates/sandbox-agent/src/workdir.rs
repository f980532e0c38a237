//! The work directory: the files at the start, and what is left at the end. When it is listed, no process but the agent is
//! alive, so nothing changes at the same time.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sandbox_protocol::agent::AgentEvent;
use sandbox_protocol::exec::ExecFile;
use sandbox_protocol::frame::MAX_FRAME_BYTES;
use sandbox_protocol::notice::StepFailure;

use crate::channel::{AtStep as _, send};

/// Where the program's files are.
pub(crate) const WORK: &str = "/work";
const O_NOFOLLOW: i32 = if cfg!(target_arch = "aarch64") { 0o100_000 } else { 0o400_000 };
const O_NONBLOCK: i32 = 0o4000;
/// Longer files are cut; the frame's own bytes need room too.
const MAX_FILE_BYTES: u64 = (MAX_FRAME_BYTES - 64) as u64;

/// Writes the files of a request. Their paths were checked to be plain and relative, and nothing but the agent has touched
/// the directory.
pub(crate) fn write_files(work: &Path, files: &[ExecFile<'_>]) -> Result<(), StepFailure> {
    for file in files {
        let step = format!("write the file {}", file.path);
        let path = work.join(file.path);
        create_directories(path.parent()).at(&step)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        let open = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode).custom_flags(O_NOFOLLOW).open(&path)
        };
        let opened = match open() {
            // A workspace has a file of this name; the request replaces it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path).and_then(|()| open())
            }
            opened => opened,
        };
        opened.and_then(|mut opened| opened.write_all(file.contents)).at(&step)?;
    }
    Ok(())
}

/// Creates the directory in which a program starts.
pub(crate) fn create_initial(work: &Path, directory: &str) -> Result<(), StepFailure> {
    create_directories(Some(&work.join(directory))).at("create the initial directory")
}

/// Builds the trees that the program may change: directories of its own, whose entries are links to the files that the
/// container mounts elsewhere.
pub(crate) fn link_trees(trees: &[(&[u8], &[u8])]) -> Result<(), StepFailure> {
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    for (from, to) in trees {
        link_tree(path(from), path(to)).at("build a writable tree")?;
    }
    Ok(())
}

fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            fs::DirBuilder::new().mode(0o755).create(&target)?;
            link_tree(&source, &target)?;
        } else {
            symlink(source, target)?;
        }
    }
    Ok(())
}

fn create_directories(path: Option<&Path>) -> io::Result<()> {
    path.map_or(Ok(()), |path| fs::DirBuilder::new().recursive(true).mode(0o755).create(path))
}

/// Sends an entry for everything that is not a directory and not in a volume.
pub(crate) fn list(work: &Path, output: &mut impl Write) -> io::Result<()> {
    let device = fs::metadata(work)?.dev();
    let mut directories = vec![work.to_path_buf()];
    while let Some(directory) = directories.pop() {
        // The program may have made a directory that its user cannot read.
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            if metadata.dev() != device {
                continue;
            }
            if metadata.is_dir() {
                directories.push(path);
                continue;
            }
            let (mode, size) = (metadata.mode(), metadata.size());
            let path = path.strip_prefix(work).unwrap_or(&path).as_os_str().as_bytes();
            send(output, &AgentEvent::FileEntry { mode, size, path })?;
        }
    }
    send(output, &AgentEvent::FileListEnd)
}

/// Sends the contents of a file, or why it cannot be read.
pub(crate) fn send_file(work: &Path, path: &[u8], output: &mut impl Write) -> io::Result<()> {
    match read(&work.join(OsStr::from_bytes(path))) {
        Ok(contents) => {
            let header = AgentEvent::file_contents_header(contents.len());
            output.write_all(&header.map_err(io::Error::other)?)?;
            output.write_all(&contents)
        }
        Err(error) => send(output, &AgentEvent::FileUnavailable(error.to_string())),
    }
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    // Non-blocking: a pipe may have taken the place of the file that was listed.
    let flags = O_NOFOLLOW | O_NONBLOCK;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut contents = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut contents)?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process;

    use sandbox_protocol::Message as _;

    use super::*;
    use crate::channel::receive;

    /// An empty directory that is removed at the end of the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("sandbox-agent.{}.{name}", process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn events(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        std::iter::from_fn(|| receive(&mut rest).unwrap()).collect()
    }

    #[test]
    fn files_are_written_and_replace_what_a_workspace_has() {
        let work = Directory::new("write");
        fs::write(work.0.join("a"), "of the workspace, and longer").unwrap();
        let file = |path, contents, executable| ExecFile { path, contents, executable };
        let files = [file("a", b"new", false), file("b/c/d", b"\0\xff", true)];
        assert!(write_files(&work.0, &files).is_ok());
        assert!(create_initial(&work.0, "e/f").is_ok());
        let read = |path| fs::read(work.0.join(path)).unwrap();
        let mode = |path| fs::metadata(work.0.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((read("a"), read("b/c/d")), (b"new".to_vec(), b"\0\xff".to_vec()));
        assert_eq!((mode("a"), mode("b/c/d")), (0o644, 0o755));
        assert!(work.0.join("e/f").is_dir());
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
        let work = Directory::new("link");
        let target = work.0.join("target");
        fs::write(&target, "untouched").unwrap();
        symlink(&target, work.0.join("link")).unwrap();
        let file = ExecFile { path: "link", contents: b"new", executable: false };
        assert!(write_files(&work.0, &[file]).is_ok());
        assert_eq!(fs::read(&target).unwrap(), b"untouched");
        assert!(fs::symlink_metadata(work.0.join("link")).unwrap().is_file());
    }

    #[test]
    fn a_failure_names_the_file() {
        let work = Directory::new("failure");
        fs::create_dir(work.0.join("taken")).unwrap();
        let file = ExecFile { path: "taken", contents: b"", executable: false };
        let failure = write_files(&work.0, &[file]).unwrap_err();
        assert_eq!(failure.step, "write the file taken");
        assert_ne!(failure.errno, 0);
    }

    #[test]
    fn a_writable_tree_has_directories_of_its_own_and_links_to_the_files() {
        let (from, to) = (Directory::new("from"), Directory::new("to"));
        fs::create_dir(from.0.join("sub")).unwrap();
        fs::write(from.0.join("sub/file"), "contents").unwrap();
        let trees = [(from.0.as_os_str().as_bytes(), to.0.as_os_str().as_bytes())];
        assert!(link_trees(&trees).is_ok());
        assert!(fs::symlink_metadata(to.0.join("sub")).unwrap().is_dir());
        assert_eq!(fs::read_link(to.0.join("sub/file")).unwrap(), from.0.join("sub/file"));
    }

    #[test]
    fn everything_but_directories_is_listed() {
        let work = Directory::new("list");
        fs::create_dir(work.0.join("sub")).unwrap();
        fs::write(work.0.join("sub/file"), "12345").unwrap();
        symlink("/etc/passwd", work.0.join("link")).unwrap();
        let mut output = Vec::new();
        list(&work.0, &mut output).unwrap();
        let frames = events(&output);
        let mut entries: Vec<(&[u8], u32, u64)> = Vec::new();
        for frame in &frames[..frames.len() - 1] {
            match AgentEvent::decode(frame) {
                Ok(AgentEvent::FileEntry { mode, size, path }) => {
                    entries.push((path, mode & 0o170_000, size));
                }
                other => panic!("{other:?}"),
            }
        }
        entries.sort_unstable();
        assert_eq!(entries, [(&b"link"[..], 0o120_000, 11), (b"sub/file", 0o100_000, 5)]);
        assert_eq!(AgentEvent::decode(&frames[2]), Ok(AgentEvent::FileListEnd));
    }

    #[test]
    fn only_regular_files_are_sent() {
        let work = Directory::new("send");
        fs::write(work.0.join("file"), "contents").unwrap();
        symlink("file", work.0.join("link")).unwrap();
        let fifo = process::Command::new("mkfifo").arg(work.0.join("pipe")).status();
        assert!(fifo.is_ok_and(|status| status.success()));
        let sent = |path: &str| {
            let mut output = Vec::new();
            send_file(&work.0, path.as_bytes(), &mut output).unwrap();
            events(&output).remove(0)
        };
        assert_eq!(AgentEvent::decode(&sent("file")), Ok(AgentEvent::FileContents(b"contents")));
        for path in ["link", "pipe", "", "missing"] {
            let frame = sent(path);
            let event = AgentEvent::decode(&frame);
            assert!(matches!(event, Ok(AgentEvent::FileUnavailable(_))), "{path}: {event:?}");
        }
    }
}
