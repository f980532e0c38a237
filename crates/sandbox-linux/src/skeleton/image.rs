//! The content of a root from an unpacked image.
//!
//! The image's files are untrusted, and so are its links: none is followed here. The directory
//! belongs to this user and no other process writes to it, so checked files do not change.

use std::fs::{DirEntry, FileType};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Shown, Skeleton, WRITTEN};

/// Top-level names that belong to the sandbox, whatever the image contains there.
const OWN: &[&str] = &["dev", "mnt", "proc", "run", "sys", "tmp", "work"];

/// Copied rather than mounted, because the sandbox has files of its own in it.
const SETTINGS: &str = "etc";
/// Mounted entry by entry, because the sandbox has entries of its own in it.
const SHARED: &str = "opt";
/// The sandbox's own entries.
const OWN_SHARED: &str = "layers";

/// More than the settings of any distribution.
const MAX_SETTINGS: usize = 4000;
const MAX_BYTES: u64 = 8 << 20;

pub(super) fn read(directory: &Path) -> io::Result<Skeleton> {
    let mut skeleton = Skeleton::empty();
    skeleton.directories.push(SHARED.to_owned());
    for (name, entry, kind) in entries(directory)? {
        match name.as_str() {
            name if OWN.contains(&name) => {}
            SETTINGS if kind.is_dir() => {
                Settings::default().copy(&entry.path(), SETTINGS, &mut skeleton)?;
            }
            SHARED if kind.is_dir() => {
                for (name, entry, kind) in entries(&entry.path())? {
                    if name != OWN_SHARED {
                        show(&mut skeleton, &entry, kind, format!("{SHARED}/{name}"))?;
                    }
                }
            }
            SETTINGS | SHARED => {}
            _ => show(&mut skeleton, &entry, kind, name)?,
        }
    }
    Ok(skeleton)
}

/// The entries of a directory, sorted. Names that are not valid UTF-8 are ignored.
fn entries(directory: &Path) -> io::Result<Vec<(String, DirEntry, FileType)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            let kind = entry.file_type()?;
            found.push((name, entry, kind));
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}

/// Directories are mounted, links are recreated. Other files at these paths are ignored.
fn show(skeleton: &mut Skeleton, entry: &DirEntry, kind: FileType, path: String) -> io::Result<()> {
    if kind.is_dir() {
        let inside = Path::new("/").join(path);
        skeleton.shown.push(Shown { host: entry.path(), inside, is_directory: true });
    } else if kind.is_symlink() {
        skeleton.links.push((path, std::fs::read_link(entry.path())?));
    }
    Ok(())
}

/// The size of what was copied.
#[derive(Default)]
struct Settings {
    entries: usize,
    bytes: u64,
}

impl Settings {
    fn copy(&mut self, directory: &Path, inside: &str, skeleton: &mut Skeleton) -> io::Result<()> {
        for (name, entry, kind) in entries(directory)? {
            let path = format!("{inside}/{name}");
            if WRITTEN.iter().any(|(own, _)| *own == path) {
                continue;
            }
            self.entries += 1;
            let metadata = entry.metadata()?;
            let everybody_reads = metadata.mode() & 0o004 != 0;
            if kind.is_dir() && everybody_reads {
                skeleton.directories.push(path.clone());
                self.copy(&entry.path(), &path, skeleton)?;
            } else if kind.is_symlink() {
                skeleton.links.push((path, std::fs::read_link(entry.path())?));
            } else if kind.is_file() && everybody_reads {
                self.bytes += metadata.len();
                self.refuse_too_much()?;
                skeleton.files.push((path, std::fs::read(entry.path())?));
            }
            self.refuse_too_much()?;
        }
        Ok(())
    }

    fn refuse_too_much(&self) -> io::Result<()> {
        if self.entries > MAX_SETTINGS || self.bytes > MAX_BYTES {
            return Err(io::Error::other(format!(
                "its /etc is larger than {MAX_SETTINGS} files and {} MiB",
                MAX_BYTES >> 20
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn an_images_files_are_mounted_except_the_sandboxs_own() {
        let image = tempfile::tempdir().unwrap();
        let at = |path: &str| image.path().join(path);
        for directory in ["usr/bin", "opt/tool", "opt/layers", "etc/ssl", "proc", "tmp", "var"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        symlink("usr/bin", at("bin")).unwrap();
        symlink("/etc", at("opt/link")).unwrap();
        symlink("/etc/shadow", at("etc/link")).unwrap();
        for (file, text) in [("etc/passwd", "theirs"), ("etc/ssl/x", "kept"), ("etc/shadow", "no")]
        {
            fs::write(at(file), text).unwrap();
        }
        fs::set_permissions(at("etc/shadow"), Permissions::from_mode(0o640)).unwrap();
        symlink("/", at("work")).unwrap();

        let skeleton = read(image.path()).unwrap();
        let shown = skeleton.shown.iter().map(|shown| shown.inside.to_str().unwrap());
        assert_eq!(shown.collect::<Vec<_>>(), ["/opt/tool", "/usr", "/var"]);
        let root = tempfile::tempdir().unwrap();
        skeleton.write(root.path()).unwrap();
        let inside = |path: &str| root.path().join(path);
        assert_eq!(fs::read_link(inside("bin")).unwrap(), Path::new("usr/bin"));
        assert_eq!(fs::read_link(inside("opt/link")).unwrap(), Path::new("/etc"));
        assert_eq!(fs::read_to_string(inside("etc/ssl/x")).unwrap(), "kept");
        assert!(fs::read_to_string(inside("etc/passwd")).unwrap().contains("sandbox:x:1000"));
        assert!(!inside("etc/shadow").exists(), "not everybody reads it");
        assert!(inside("work").is_dir() && !inside("work").is_symlink());
    }

    #[test]
    fn links_in_place_of_our_directories_are_left_out() {
        let image = tempfile::tempdir().unwrap();
        for name in ["etc", "opt", "tmp", "dev", "proc", "mnt"] {
            symlink("/nonexistent", image.path().join(name)).unwrap();
        }
        let root = tempfile::tempdir().unwrap();
        read(image.path()).unwrap().write(root.path()).unwrap();
        for name in ["etc", "opt", "tmp", "dev", "proc", "mnt"] {
            let found = root.path().join(name).symlink_metadata().unwrap();
            assert!(found.is_dir(), "{name}");
        }
    }

    #[test]
    fn settings_have_a_bound() {
        let image = tempfile::tempdir().unwrap();
        fs::create_dir(image.path().join("etc")).unwrap();
        let large = fs::File::create(image.path().join("etc/large")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        let refused = read(image.path()).unwrap_err().to_string();
        assert!(refused.contains("its /etc is larger than"), "{refused}");
    }
}
