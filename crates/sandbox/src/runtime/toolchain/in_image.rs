//! Finds toolchains in an unpacked image.
//!
//! The image is untrusted: its links are resolved within its root, never out of it, and its programs run only in a sandbox.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

use sandbox_core::Glob;

use super::{FileStamp, Found, ProbeError, mounts, query, version_cache};
use crate::runtime::recipe::Toolchain;
use crate::runtime::version;

/// An unpacked image.
#[derive(Clone, Copy)]
pub(crate) struct UnpackedImage<'a> {
    /// Its root directory on the host.
    pub(crate) root: &'a Path,
    /// Its digest.
    pub(crate) digest: &'a str,
    /// Its `PATH`.
    pub(crate) path: &'a str,
    /// File that caches the versions of toolchains.
    pub(crate) version_cache: Option<&'a Path>,
}

/// Runs a program of the image in a sandbox, and returns what it printed.
pub(crate) type RunProgram<'a> = &'a dyn Fn(&Path, &[String]) -> Result<String, String>;

/// Directory in our own images for toolchains that no package of the distribution provides, with one directory for each
/// language. `{toolchains}` in a recipe stands for it.
pub const TOOLCHAINS_IN_IMAGES: &str = "/opt/sandbox-run/toolchains";

/// The candidates of a recipe in search order for an image: toolchains installed by our own images, then names along the
/// image's `PATH`, which shows what its maker prefers, and then the paths that are usual on hosts.
pub(crate) fn candidates(programs: &[String]) -> Vec<String> {
    let own = programs.iter().filter_map(|program| program.strip_prefix("{toolchains}"));
    let own = own.map(|rest| format!("{TOOLCHAINS_IN_IMAGES}{rest}"));
    let names = programs.iter().filter_map(|program| program.rsplit('/').next()).map(str::to_owned);
    let names = names.filter(|name| !name.contains('*'));
    let places = programs.iter().filter(|program| program.starts_with('/')).cloned();
    let mut candidates = Vec::new();
    for candidate in own.chain(names).chain(places) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// The toolchain that a candidate of a recipe matches in an image.
pub(crate) fn probe(
    image: UnpackedImage<'_>,
    candidate: &str,
    toolchain: &Toolchain,
    run_program: RunProgram<'_>,
) -> Result<Found, ProbeError> {
    let (program, real) = image.find(candidate).ok_or(ProbeError::NotFound)?;
    let unusable = |reason| ProbeError::Unusable(format!("{}: {reason}", program.display()));
    let version = image.version_of(&program, &real, toolchain, run_program).map_err(unusable)?;
    if let Some(least) = &toolchain.least
        && version::compare(&version, &least.0).is_lt()
    {
        let reason = format!("it is version {version}, but at least {} is required", least.0);
        return Err(unusable(reason));
    }
    let stamp = FileStamp::of(&real).ok_or_else(|| unusable("cannot be read".to_owned()))?;
    let inside = real.strip_prefix(image.root).unwrap_or(&real);
    let root = mounts::root_of(&Path::new("/").join(inside));
    let image = Some(image.digest.to_owned());
    Ok(Found { program, version, root, trees: Vec::new(), is_system: true, real, stamp, image })
}

impl UnpackedImage<'_> {
    /// Finds a program by name, path or pattern: its path inside, and the resolved file on the host.
    pub(crate) fn find(&self, candidate: &str) -> Option<(PathBuf, PathBuf)> {
        let candidates = if candidate.starts_with('/') {
            self.matches(candidate)
        } else if candidate.contains('/') {
            return None;
        } else {
            self.path.split(':').map(|directory| Path::new(directory).join(candidate)).collect()
        };
        candidates.into_iter().filter(|path| path.is_absolute()).find_map(|path| {
            let real = self.executable(&path)?;
            Some((path, real))
        })
    }

    /// Every path that matches a pattern, in which `*` matches within one name.
    fn matches(&self, pattern: &str) -> Vec<PathBuf> {
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let next = |directory: PathBuf| match part.parse::<Glob>() {
                Ok(glob) if part.contains('*') => self.listed(&directory, &glob),
                _ => vec![directory.join(part)],
            };
            found = found.into_iter().flat_map(next).collect();
        }
        // The newest version first, as far as file names show it.
        found.sort_by(|left, right| {
            version::compare(&right.to_string_lossy(), &left.to_string_lossy())
        });
        found
    }

    fn listed(&self, directory: &Path, glob: &Glob) -> Vec<PathBuf> {
        let Some(file) = self.open(directory) else { return Vec::new() };
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| glob.matches(name)).map(|name| directory.join(name)).collect()
    }

    /// Opens a path inside the image. Links are resolved with the image as root.
    fn open(&self, inside: &Path) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = open(self.root, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
        let scope = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(root.as_fd(), inside, flags, Mode::empty(), scope).ok()
    }

    /// The file of a path inside the image, if a program inside can execute it.
    fn executable(&self, inside: &Path) -> Option<PathBuf> {
        let file = self.open(inside)?;
        let found = fstat(&file).ok()?;
        let is_program = FileType::from_raw_mode(found.st_mode).is_file()
            && Mode::from_raw_mode(found.st_mode).contains(Mode::ROTH | Mode::XOTH);
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let real = rustix::fs::readlinkat(CWD, name, Vec::new()).ok().filter(|_| is_program)?;
        real.into_string().ok().map(PathBuf::from)
    }

    fn version_of(
        &self,
        program: &Path,
        real: &Path,
        toolchain: &Toolchain,
        run_program: RunProgram<'_>,
    ) -> Result<String, String> {
        let rule = &toolchain.version;
        let known =
            self.version_cache.and_then(|cache| version_cache::get(cache, real, &rule.args));
        if let Some(version) = known {
            return Ok(version);
        }
        let version = query::version_in(&run_program(program, &rule.args)?, rule)?;
        if let Some(cache) = self.version_cache {
            version_cache::put(cache, real, &rule.args, &version);
        }
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn toolchain(text: &str) -> Toolchain {
        toml::from_str(&format!("programs = ['x']\nversion = {{ args = ['-v'] }}\n{text}")).unwrap()
    }

    fn image() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for directory in ["usr/bin", "opt/toy/bin", "etc/alternatives"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let toy = root.path().join("opt/toy/bin/toy-1");
        fs::write(&toy, "#!").unwrap();
        fs::set_permissions(&toy, Permissions::from_mode(0o755)).unwrap();
        root
    }

    fn unpacked(root: &Path) -> UnpackedImage<'_> {
        UnpackedImage { root, digest: "sha256:00", path: "relative:/usr/bin", version_cache: None }
    }

    #[test]
    fn links_are_resolved_inside_the_image() {
        let root = image();
        symlink("/etc/alternatives/toy", root.path().join("usr/bin/toy")).unwrap();
        symlink("../../../../../opt/toy/bin/toy-1", root.path().join("etc/alternatives/toy"))
            .unwrap();
        let answer = |program: &Path, args: &[String]| {
            assert_eq!((program, args), (Path::new("/usr/bin/toy"), &["-v".to_owned()][..]));
            Ok("toy 1.2.3".to_owned())
        };
        let image = unpacked(root.path());
        let found = probe(image, "toy", &toolchain(""), &answer).unwrap();
        assert_eq!((found.version.as_str(), &*found.root), ("1.2.3", Path::new("/opt/toy")));
        assert_eq!(found.program, Path::new("/usr/bin/toy"));
        assert!(found.identity().contains("sha256:00") && found.trees.is_empty());
        let old = probe(image, "toy", &toolchain("least = '2'"), &answer);
        assert!(matches!(old, Err(ProbeError::Unusable(reason)) if reason.contains("at least 2")));
    }

    #[test]
    fn the_path_of_an_image_is_searched_before_usual_paths() {
        let programs =
            ["/usr/bin/toy", "toy9", "~/.toys/*/bin/toy", "/opt/*/toy-*", "{toolchains}/toy/toy"];
        let programs = programs.map(str::to_owned);
        let own = format!("{TOOLCHAINS_IN_IMAGES}/toy/toy");
        assert_eq!(candidates(&programs), [&own, "toy", "toy9", "/usr/bin/toy", "/opt/*/toy-*"]);
    }

    #[test]
    fn files_outside_the_image_are_not_found() {
        let root = image();
        // This file exists on the host and not in the image.
        assert!(Path::new("/bin/sh").exists());
        symlink("/bin/sh", root.path().join("usr/bin/shell")).unwrap();
        symlink("../../../../../../../../bin/sh", root.path().join("usr/bin/up")).unwrap();
        symlink("/proc/self/exe", root.path().join("usr/bin/magic")).unwrap();
        fs::write(root.path().join("usr/bin/data"), "").unwrap();
        let image = unpacked(root.path());
        for name in ["shell", "up", "magic", "data", "none", "/opt/*/bin/x", "~/toy", "a/b"] {
            assert_eq!(image.find(name), None, "{name}");
        }
        assert_eq!(image.find("/opt/*/bin/toy-*").unwrap().0, Path::new("/opt/toy/bin/toy-1"));
        let direct = image.find("/opt/toy/bin/toy-1").unwrap();
        assert_eq!(direct.1, root.path().canonicalize().unwrap().join("opt/toy/bin/toy-1"));
    }
}
