//! Files that the host's settings name, made visible to a build sandbox.

use std::path::{Path, PathBuf};

use sandbox_core::{InputFile, Tree};

use super::PackageError;

/// Directories of the host that every sandbox mounts at the same path.
const MOUNTED: &[&str] = &["/usr", "/etc/ssl/certs", "/etc/pki/tls/certs"];
/// Directory below the work directory for copies.
const COPIES: &str = "host";
/// Larger than any settings file or certificate bundle.
const MAX_COPY_BYTES: u64 = 16 << 20;

/// Files and directories of the host for a build sandbox.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    /// Copies of single files. The original is often not readable for the user inside.
    pub(crate) files: Vec<InputFile>,
    /// Whole directories.
    pub(crate) trees: Vec<Tree>,
}

impl HostFiles {
    /// Makes a path of the host visible inside, and returns its path inside. A path that is missing or unreadable is
    /// returned unchanged: the manager then reports it.
    pub(crate) fn share(&mut self, path: &Path) -> Result<PathBuf, PackageError> {
        let Ok(found) = path.metadata() else {
            return Ok(path.to_owned());
        };
        if !path.is_absolute() || MOUNTED.iter().any(|mounted| path.starts_with(mounted)) {
            return Ok(path.to_owned());
        }
        if found.is_dir() {
            let tree =
                Tree { host: path.to_owned(), inside: path.to_owned(), copy_on_write: false };
            if !self.trees.contains(&tree) {
                self.trees.push(tree);
            }
            return Ok(path.to_owned());
        }
        if !found.is_file() || found.len() > MAX_COPY_BYTES {
            return Ok(path.to_owned());
        }
        let contents = std::fs::read(path).map_err(PackageError::file("read", path))?;
        let place = format!("{COPIES}/{}", self.files.len());
        let path = place.parse().expect("a name and a number are a plain path");
        self.files.push(InputFile { path, contents, executable: false });
        Ok(Path::new("/work").join(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_directories_mounted() {
        let host = tempfile::tempdir().unwrap();
        let file = host.path().join("pip.conf");
        std::fs::write(&file, "text").unwrap();
        let mut host_files = HostFiles::default();
        assert_eq!(host_files.share(&file).unwrap(), Path::new("/work/host/0"));
        assert_eq!(host_files.files[0].contents, b"text");
        for _ in 0..2 {
            assert_eq!(host_files.share(host.path()).unwrap(), host.path());
        }
        assert_eq!(host_files.trees.len(), 1);
    }

    #[test]
    fn mounted_and_missing_paths_stay_unchanged() {
        let mut host_files = HostFiles::default();
        for path in ["/usr/bin/env", "/nowhere/at/all", "relative", "/dev/null"] {
            assert_eq!(host_files.share(Path::new(path)).unwrap(), Path::new(path));
        }
        assert!(host_files.files.is_empty() && host_files.trees.is_empty());
    }
}
