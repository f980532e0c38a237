//! The root that programs see, as a directory: for container runtimes, which mount the rest themselves.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::template::{MOUNT_POINTS, SHOWN_IN_ETC, SYSTEM, WRITTEN, read_copies, read_links};

/// Fills an empty directory with what is not mounted, and says what is: paths of the host that are shown read-only
/// at the same place.
pub fn build(root: &Path) -> io::Result<Vec<PathBuf>> {
    for directory in MOUNT_POINTS {
        std::fs::create_dir_all(root.join(directory))?;
    }
    let copies = read_copies();
    let written = WRITTEN.iter().map(|(path, text)| (*path, text.as_bytes()));
    for (path, contents) in written.chain(copies.iter().map(|(path, bytes)| (&**path, &**bytes))) {
        std::fs::write(root.join(path), contents)?;
    }
    for (name, target) in read_links(SYSTEM) {
        symlink(target, root.join(name))?;
    }
    if Path::new("/usr/lib/os-release").exists() {
        symlink("../usr/lib/os-release", root.join("etc/os-release"))?;
    }
    let system = SYSTEM.iter().map(|name| Path::new("/").join(name));
    let directories = system.filter(|path| path.is_dir() && !path.is_symlink());
    let shown = ["/usr"].iter().chain(SHOWN_IN_ETC).map(PathBuf::from);
    let shown: Vec<PathBuf> = shown.chain(directories).filter(|path| path.exists()).collect();
    for path in &shown {
        make_place(root, path)?;
    }
    Ok(shown)
}

/// Makes a place in the root onto which a path of the host can be mounted.
pub fn make_place(root: &Path, path: &Path) -> io::Result<()> {
    make_place_at(root, path, path)
}

/// The same, at another path inside.
pub fn make_place_at(root: &Path, host: &Path, inside: &Path) -> io::Result<()> {
    let place = root.join(inside.strip_prefix("/").unwrap_or(inside));
    if place.exists() {
        return Ok(());
    }
    if host.is_dir() {
        return std::fs::create_dir_all(&place);
    }
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&place, b"")
}
