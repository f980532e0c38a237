//! The content of a root before anything of a program is in it: mount points, a few small files,
//! links, and trees to mount read-only. It comes from the host or from an unpacked image.
//!
//! The native backend assembles it in a mount namespace (`template.rs`); for container runtimes it
//! is written to a directory, and they mount the rest.

mod image;

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// Mount points of the sandbox's own file systems.
const MOUNT_POINTS: &[&str] = &["work", "tmp", "mnt", "dev", "dev/shm", "dev/pts", "proc", "etc"];

/// Top-level names that are part of `/usr` on a merged system and directories on others.
pub(crate) const SYSTEM: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Small host files that programs expect, copied if they exist.
const COPIED_FILES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/services",
    "/etc/protocols",
    "/etc/mime.types",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/debian_version",
];

/// Host directories under `/etc` that toolchains need, mounted read-only if they exist.
const SHOWN_IN_ETC: &[&str] = &["/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs"];

const WRITTEN: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"),
    ("etc/hostname", "sandbox\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("etc/resolv.conf", ""),
];

/// A root, as plain data. Paths are relative to it and unique, and none is below a link.
#[derive(Clone, Debug)]
pub struct Skeleton {
    directories: Vec<String>,
    files: Vec<(String, Vec<u8>)>,
    links: Vec<(String, PathBuf)>,
    shown: Vec<Shown>,
}

/// A directory or file that is mounted read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The path on the host.
    pub host: PathBuf,
    /// The absolute path inside.
    pub inside: PathBuf,
    /// Whether it is a directory. Its path may be hidden while the root is assembled.
    pub is_directory: bool,
}

impl Skeleton {
    /// The root for the host's own programs.
    pub fn of_host() -> Self {
        let mut skeleton = Self::empty();
        for path in COPIED_FILES {
            if let Ok(contents) = std::fs::read(path) {
                skeleton.files.push((below_root(path), contents));
            }
        }
        for name in SYSTEM {
            if let Ok(target) = std::fs::read_link(Path::new("/").join(name)) {
                skeleton.links.push(((*name).to_owned(), target));
            }
        }
        if Path::new("/usr/lib/os-release").exists() {
            skeleton.links.push(("etc/os-release".to_owned(), "../usr/lib/os-release".into()));
        }
        skeleton.shown = Self::shown_of_host();
        skeleton
    }

    /// What the root for the host's own programs shows of the host.
    pub fn shown_of_host() -> Vec<Shown> {
        let system = SYSTEM.iter().map(|name| Path::new("/").join(name));
        let directories = system.filter(|path| path.is_dir() && !path.is_symlink());
        let shown = ["/usr"].iter().chain(SHOWN_IN_ETC).map(PathBuf::from).chain(directories);
        let shown = shown.filter(|path| path.exists());
        let shown = shown.map(|path| Shown {
            is_directory: path.is_dir(),
            host: path.clone(),
            inside: path,
        });
        shown.collect()
    }

    /// The root for an image that was unpacked into this directory.
    pub fn of_image(directory: &Path) -> io::Result<Self> {
        image::read(directory)
    }

    /// The content of every root.
    fn empty() -> Self {
        let written =
            WRITTEN.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Self {
            directories: MOUNT_POINTS.iter().map(ToString::to_string).collect(),
            files: written.collect(),
            links: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// What to mount.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// Writes everything that is not mounted to an empty directory, with mount points for the rest.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        for directory in &self.directories {
            std::fs::create_dir_all(root.join(directory))?;
        }
        for (path, contents) in &self.files {
            std::fs::write(root.join(path), contents)?;
        }
        for Shown { inside, is_directory, .. } in &self.shown {
            make_place(root, inside, *is_directory)?;
        }
        // Last, so that nothing is written through a link.
        for (path, target) in &self.links {
            symlink(target, root.join(path))?;
        }
        Ok(())
    }
}

/// Creates a mount point for a directory or a file. A link in the path would lead out of the root,
/// and is refused.
pub fn make_place(root: &Path, inside: &Path, is_directory: bool) -> io::Result<()> {
    let mut place = root.to_owned();
    let names = inside.components().filter(|part| *part != Component::RootDir);
    let mut names = names.peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(io::Error::other(format!("{} is no plain path", inside.display())));
        };
        place.push(name);
        let is_directory = names.peek().is_some() || is_directory;
        match place.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let reason = format!("there is a link on the way to {}", inside.display());
                return Err(io::Error::other(reason));
            }
            Ok(_) => {}
            Err(_) if is_directory => std::fs::create_dir(&place)?,
            Err(_) => std::fs::write(&place, b"")?,
        }
    }
    Ok(())
}

fn below_root(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_of_the_host_has_a_place_for_all_it_shows() {
        let root = tempfile::tempdir().unwrap();
        let skeleton = Skeleton::of_host();
        skeleton.write(root.path()).unwrap();
        assert!(skeleton.shown().iter().any(|shown| shown.inside == Path::new("/usr")));
        for Shown { inside, .. } in skeleton.shown() {
            assert!(root.path().join(inside.strip_prefix("/").unwrap()).exists(), "{inside:?}");
        }
        assert!(root.path().join("work").is_dir() && root.path().join("etc/passwd").is_file());
    }

    #[test]
    fn no_place_is_made_behind_a_link() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), root.path().join("opt")).unwrap();
        let refused = make_place(root.path(), Path::new("/opt/layers/x"), true);
        assert!(refused.unwrap_err().to_string().contains("there is a link"));
        assert!(std::fs::read_dir(elsewhere.path()).unwrap().next().is_none());
        assert!(make_place(root.path(), Path::new("/../x"), true).is_err());
    }
}
