//! Opens files that are named on the command line without blocking: a named pipe without a writer would block forever,
//! and reading a device may never end.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat, fstatfs, major, minor};

use crate::errors::Failure;

/// `/dev/null`, the only device that is accepted: it is empty.
const NULL_DEVICE: (u32, u32) = (1, 3);
/// The file system of anonymous pipes.
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// A file that is open for reading.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) file: File,
    /// The size of a regular file; 0 for a pipe, whose size is not known before it is read.
    pub(crate) size: u64,
}

/// Opens a regular file, a pipe that a shell made for `<(...)`, or `/dev/null`. Follows links, refuses everything else,
/// and never blocks.
pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
    let name = path.display().to_string();
    let cannot = |error: io::Error| cannot_read(&name, &error);
    // Before opening, because opening a device may already have side effects.
    check_kind(&name, &fs::metadata(path).map_err(cannot)?)?;
    // The file may be replaced before it is opened: open without blocking and check again.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    check_kind(&name, &metadata)?;
    let is_pipe = metadata.file_type().is_fifo();
    if is_pipe {
        let is_named =
            fstatfs(&file).is_ok_and(|system| system.f_type.cast_unsigned() != PIPEFS_MAGIC);
        if is_named {
            return Err(refused(&name, "a named pipe"));
        }
        // The shell's command writes to it: blocking reads wait for that, and Ctrl-C interrupts them.
        let blocking = fcntl_getfl(&file).map(|flags| flags - OFlags::NONBLOCK);
        let set = blocking.and_then(|flags| fcntl_setfl(&file, flags));
        set.map_err(|error| cannot(error.into()))?;
    }
    Ok(Input { file, size: metadata.len() })
}

/// Refuses a device as standard input, which is read to its end and may have none. Terminals and /dev/null have one.
pub(crate) fn check_stdin(stdin: &io::Stdin) -> Result<(), Failure> {
    let Ok(stat) = fstat(stdin) else {
        // It is closed; reading reports that.
        return Ok(());
    };
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    let is_device = kind.is_char_device() || kind.is_block_device();
    let is_null =
        kind.is_char_device() && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL_DEVICE;
    if is_device && !is_null && !stdin.is_terminal() {
        let message = "cannot read the code from standard input: it is a device, which may have no end; \
             pipe the code in or name a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// Whether the path names a pipe or device, such as a pipe of `<(...)`, whose name says nothing about its language.
pub(crate) fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn check_kind(name: &str, metadata: &Metadata) -> Result<(), Failure> {
    let kind = metadata.file_type();
    let device = (major(metadata.rdev()), minor(metadata.rdev()));
    if kind.is_file() || kind.is_fifo() || (kind.is_char_device() && device == NULL_DEVICE) {
        return Ok(());
    }
    Err(refused(name, describe_kind(kind)))
}

fn describe_kind(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn refused(name: &str, kind: &str) -> Failure {
    Failure::Usage(format!(
        "cannot read '{name}': it is {kind}, and only regular files are read; pipe its contents to standard input instead"
    ))
}

/// A file that cannot be read, with the reason.
pub(super) fn cannot_read(name: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Failure::Usage(format!("cannot read '{name}': {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;

    fn refusal(path: &Path) -> String {
        open(path).unwrap_err().message().unwrap()
    }

    #[test]
    fn special_files_are_refused_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(status.success());
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for (path, words) in [
            (pipe.as_path(), "a named pipe"),
            (link.as_path(), "a named pipe"),
            (socket.as_path(), "a socket"),
            (directory.path(), "a directory"),
            (Path::new("/dev/zero"), "a device"),
            (Path::new("/dev/tty"), "a device"),
        ] {
            let message = refusal(path);
            assert!(message.contains(&format!("it is {words}, ")), "{message}");
        }
    }

    #[test]
    fn a_pipe_of_a_shell_and_dev_null_are_read() {
        let (reader, writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let mut input = open(Path::new(&path)).unwrap();
        assert!(is_stream(Path::new(&path)));
        let late = std::thread::spawn(move || {
            use io::Write as _;
            (&writer).write_all(b"late").unwrap();
        });
        let mut text = String::new();
        input.file.read_to_string(&mut text).unwrap();
        late.join().unwrap();
        assert_eq!(text, "late");
        assert!(open(Path::new("/dev/null")).is_ok());
    }
}
