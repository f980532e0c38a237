//! Writes collected files to `--output-dir`.
//!
//! Their names and contents come from a hostile program, and the directory may contain links that an earlier program
//! left. Each path component is opened relative to the descriptor of its parent, and never through a link.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sandbox::{FileEncoding, OutputFile, RelativePath};

use crate::errors::Failure;

/// The open directory that `--output-dir` names.
pub(crate) struct OutputDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl OutputDirectory {
    /// Opens the directory and creates it if it is missing. Links in its path are followed, because the user named it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::Usage(format!(
                "cannot create or open the output directory '{}': {error}",
                path.display()
            ))
        };
        fs::create_dir_all(path).map_err(cannot)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty());
        Ok(Self {
            path: path.to_owned(),
            descriptor: descriptor.map_err(|error| cannot(error.into()))?,
        })
    }

    /// Writes all files; replaces the contents of existing regular files.
    pub(crate) fn write(&self, files: &[OutputFile]) -> Result<(), Failure> {
        for file in files {
            self.write_one(file).map_err(|error| {
                Failure::Internal(format!(
                    "cannot write '{}' to the output directory '{}': {error}",
                    file.path,
                    self.path.display()
                ))
            })?;
        }
        Ok(())
    }

    fn write_one(&self, file: &OutputFile) -> io::Result<()> {
        let contents = contents(file)?;
        let path: RelativePath = file.path.parse().map_err(io::Error::other)?;
        let mut names: Vec<&str> = path.components().collect();
        let Some(name) = names.pop() else {
            return Err(io::Error::other("the path is empty"));
        };
        let mut directory = self.descriptor.try_clone()?;
        for name in names {
            directory = enter(&directory, name)?;
        }
        let mut target = open_regular(&directory, name)?;
        target.set_len(0)?;
        target.write_all(&contents)
    }
}

fn contents(file: &OutputFile) -> io::Result<Vec<u8>> {
    match file.encoding {
        FileEncoding::Utf8 => Ok(file.content.clone().into_bytes()),
        FileEncoding::Base64 => STANDARD.decode(&file.content).map_err(io::Error::other),
    }
}

/// Opens a subdirectory, created if it is missing.
fn enter(directory: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match rustix::fs::mkdirat(directory, name, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            io::Error::other(format!("'{name}' exists and is not a directory"))
        }
        error => error.into(),
    })
}

/// Opens or creates a regular file for writing. It is truncated only after its type is checked; opening does not block
/// on a pipe.
fn open_regular(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let refuse = || io::Error::other("it exists and is not a regular file");
    let descriptor = rustix::fs::openat(directory, name, flags, mode);
    let descriptor = descriptor.map_err(|error| match error {
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => refuse(),
        error => error.into(),
    })?;
    let kind = rustix::fs::fstat(&descriptor)?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return Err(refuse());
    }
    Ok(File::from(descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(path: &str, encoding: FileEncoding, content: &str) -> OutputFile {
        let (path, content) = (path.into(), content.into());
        OutputFile { path, size: 0, sha256: String::new(), encoding, content }
    }

    fn text(path: &str, content: &str) -> OutputFile {
        file(path, FileEncoding::Utf8, content)
    }

    #[test]
    fn files_are_written_with_their_directories_and_replace_older_ones() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("new/dir");
        let directory = OutputDirectory::open(&target).unwrap();
        let bytes = file("a/b/c.bin", FileEncoding::Base64, "/3g=");
        directory.write(&[text("x", "long text"), bytes]).unwrap();
        directory.write(&[text("x", "short")]).unwrap();
        assert_eq!(fs::read(target.join("x")).unwrap(), b"short");
        assert_eq!(fs::read(target.join("a/b/c.bin")).unwrap(), b"\xffx");
    }

    #[test]
    fn existing_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (outside, inside) = (root.path().join("outside"), root.path().join("inside"));
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("file"), "kept").unwrap();
        let directory = OutputDirectory::open(&inside).unwrap();
        symlink(&outside, inside.join("directory")).unwrap();
        symlink(outside.join("file"), inside.join("file")).unwrap();
        symlink(outside.join("new"), inside.join("dangling")).unwrap();
        for path in ["directory/file", "file", "dangling", "directory"] {
            let refused = directory.write(&[text(path, "changed")]);
            assert!(refused.is_err(), "{path} was written");
        }
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"kept");
        assert!(!outside.join("new").exists());
    }

    #[test]
    fn paths_outside_the_directory_and_special_files_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("inside");
        let directory = OutputDirectory::open(&inside).unwrap();
        fs::create_dir(inside.join("taken")).unwrap();
        let pipe = inside.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        for path in ["../x", "/x", "a/../../x", "taken", "pipe"] {
            let refused = directory.write(&[text(path, "changed")]);
            assert!(refused.is_err(), "{path} was written");
        }
        assert!(!root.path().join("x").exists());
    }

    #[test]
    fn an_output_directory_that_cannot_be_created_is_a_usage_error() {
        let failure = OutputDirectory::open(Path::new("/dev/null/x"));
        let failure = failure.err().unwrap();
        assert_eq!(failure.exit_code(), 2);
    }
}
