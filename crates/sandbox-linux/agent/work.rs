//! The work directory: what is there at the start, and what is left at the end. When the end is looked at, no process
//! but the agent is alive, so that nothing changes under it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::frame::{HEAD, LONGEST, Packer, head, send, to_supervisor};
use crate::order::Order;
use crate::{At as _, Failure};

/// Where the program's files are.
pub(crate) const WORK: &str = "/work";

const O_NOFOLLOW: i32 = if cfg!(target_arch = "aarch64") { 0o100_000 } else { 0o400_000 };
const O_NONBLOCK: i32 = 0o4000;

/// Writes the files of an order. Their paths were checked to be plain and relative, and nothing but the agent
/// has touched the directory.
pub(crate) fn place(order: &Order) -> Result<(), Failure> {
    for file in &order.files {
        let step = format!("place the file {}", file.path);
        let path = Path::new(WORK).join(&file.path);
        make_directories(path.parent()).at(&step)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        let open = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode).custom_flags(O_NOFOLLOW).open(&path)
        };
        let opened = match open() {
            // A workspace has one of that name, whose place it takes.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path).and_then(|()| open())
            }
            opened => opened,
        };
        opened.and_then(|mut opened| opened.write_all(&file.contents)).at(&step)?;
    }
    make_directories(Some(&Path::new(WORK).join(&order.directory))).at("make the directory")
}

/// Makes trees that the program may write to: the directories are its own, and the files links to what is shown
/// elsewhere. What it replaces or adds is its own too.
pub(crate) fn copy(order: &Order) -> Result<(), Failure> {
    for (from, to) in &order.copies {
        link_all(from, to).at("make a tree that can be written to")?;
    }
    Ok(())
}

fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            fs::DirBuilder::new().mode(0o755).create(&target)?;
            link_all(&source, &target)?;
        } else {
            symlink(source, target)?;
        }
    }
    Ok(())
}

fn make_directories(path: Option<&Path>) -> io::Result<()> {
    path.map_or(Ok(()), |path| fs::DirBuilder::new().recursive(true).mode(0o755).create(path))
}

/// Says the name of everything that is not a directory, and lies in no volume.
pub(crate) fn list(output: &mut File) -> io::Result<()> {
    let own = fs::metadata(WORK)?.dev();
    let mut directories = vec![PathBuf::from(WORK)];
    while let Some(directory) = directories.pop() {
        // The program may have made a directory that it cannot read.
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            if metadata.dev() != own {
                continue;
            }
            if metadata.is_dir() {
                directories.push(path);
                continue;
            }
            let mut name = Packer::default();
            name.number(metadata.mode().into()).number(metadata.size());
            name.0.extend_from_slice(below_work(&path));
            send(output, to_supervisor::NAME, &name.0)?;
        }
    }
    send(output, to_supervisor::NAMES_END, &[])
}

fn below_work(path: &Path) -> &[u8] {
    path.strip_prefix(WORK).unwrap_or(path).as_os_str().as_bytes()
}

/// Hands over the content of a file.
pub(crate) fn give(path: &[u8], output: &mut File) -> io::Result<()> {
    match read(path) {
        Ok(contents) => {
            output.write_all(&head(to_supervisor::FILE, contents.len()))?;
            output.write_all(&contents)
        }
        Err(error) => send(output, to_supervisor::NO_FILE, error.to_string().as_bytes()),
    }
}

fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    let path = Path::new(WORK).join(OsStr::from_bytes(path));
    let flags = O_NOFOLLOW | O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut contents = Vec::new();
    let most = LONGEST - HEAD;
    file.take(most as u64).read_to_end(&mut contents)?;
    Ok(contents)
}
