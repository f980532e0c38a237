//! Finds toolchains on this host: path, version, and the files that a sandbox must mount.

mod host_paths;
pub(crate) mod in_image;
mod mounts;
pub(crate) mod query;
mod search;
mod version_cache;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandbox_core::Tree;

use super::recipe::{Toolchain, VersionRule};
use super::version;
pub(crate) use host_paths::HostPaths;
pub use host_paths::toolchains_directory;
pub(crate) use search::directories;
use version_cache::FileStamp;

/// A toolchain that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its path inside.
    pub(crate) program: PathBuf,
    pub(crate) version: String,
    /// Its root directory.
    pub(crate) root: PathBuf,
    /// Host files that it needs besides what every sandbox mounts.
    pub(crate) trees: Vec<Tree>,
    /// Whether it is in a directory that every sandbox mounts.
    pub(crate) is_system: bool,
    /// The resolved file, and its state when it was probed.
    real: PathBuf,
    stamp: FileStamp,
    /// The digest of the image that contains it; `None` for the host.
    image: Option<String>,
}

/// Databases of package managers: they change with every installed package. Compilers use files of many packages: headers,
/// libraries, assembler and linker.
const PACKAGES: &[&str] =
    &["/var/lib/dpkg/status", "/var/lib/rpm", "/lib/apk/db/installed", "/var/lib/pacman/local"];

impl Found {
    /// Whether the file is unchanged since it was probed.
    pub(crate) fn is_current(&self) -> bool {
        FileStamp::of(&self.real).as_ref() == Some(&self.stamp)
    }

    /// Identifies the program in cache keys: changes whenever the program does.
    pub(crate) fn identity(&self) -> String {
        let image = self.image.as_deref().unwrap_or("host");
        let (program, stamp) = (self.program.display(), self.stamp.describe());
        format!("{program} {} {stamp} {image}", self.version)
    }

    /// Like `identity`, and also changes whenever something may have changed that a compiler uses: the directories of a
    /// private toolchain, or the packages of the system.
    pub(crate) fn identity_with_libraries(&self) -> String {
        if self.image.is_some() {
            // Images are immutable.
            return self.identity();
        }
        let own = ["", "bin", "lib", "libexec", "include"].map(|name| self.root.join(name));
        let own = own.into_iter().filter(|_| !self.is_system);
        let files = own.chain(PACKAGES.iter().map(PathBuf::from));
        let stamps = files.filter_map(|place| FileStamp::of(&place)).map(|stamp| stamp.describe());
        std::iter::once(self.identity()).chain(stamps).collect::<Vec<_>>().join("\n")
    }
}

/// Why a candidate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeError {
    /// No such file.
    NotFound,
    /// The file exists, but cannot be used for this reason.
    Unusable(String),
}

/// The toolchains that a candidate of a recipe matches on this host, the preferred one first.
pub(crate) fn probe(
    candidate: &str,
    toolchain: &Toolchain,
    host_paths: &HostPaths,
) -> Vec<Result<Found, ProbeError>> {
    let by_name = !candidate.contains('/');
    let paths = search::find(candidate, host_paths);
    if paths.is_empty() {
        return vec![Err(ProbeError::NotFound)];
    }
    let probe = |path: PathBuf| {
        let unusable = |reason| ProbeError::Unusable(format!("{}: {reason}", path.display()));
        examine(&path, by_name, toolchain, host_paths).map_err(unusable)
    };
    paths.into_iter().map(probe).collect()
}

/// Whether a program, by name or path, exists.
pub(crate) fn exists(candidate: &str, host_paths: &HostPaths) -> bool {
    !search::find(candidate, host_paths).is_empty()
}

/// Files and directories of the host that match a path or pattern.
pub(crate) fn existing(pattern: &str) -> Vec<PathBuf> {
    search::find(pattern, &HostPaths::from_environment())
}

fn examine(
    path: &Path,
    by_name: bool,
    toolchain: &Toolchain,
    host_paths: &HostPaths,
) -> Result<Found, String> {
    let mut path = path.to_owned();
    let mut real = real_path(&path)?;
    if let Some(args) = toolchain.real.as_ref().filter(|_| by_name && !mounts::is_system(&real)) {
        path = resolve_shim(&path, args)?;
        real = real_path(&path)?;
    }
    let metadata = real.metadata().map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not an executable file".to_owned());
    }
    let stamp = FileStamp::of(&real).ok_or("cannot be read")?;
    let version = version_of(&path, &real, &toolchain.version, host_paths)?;
    if let Some(least) = &toolchain.least
        && version::compare(&version, &least.0).is_lt()
    {
        return Err(format!("it is version {version}, but at least {} is required", least.0));
    }
    // Keep a path that exists inside: some programs depend on the name they are called by. Resolve any other path, such as
    // a link through /etc/alternatives, which does not exist inside.
    let program = if mounts::is_reachable_inside(&path) { path } else { real.clone() };
    let root = mounts::root_of(&real);
    let is_system = mounts::is_system(&real);
    let own = (!is_system).then(|| mounts::tree(&real, &root, host_paths));
    let patterns = toolchain.shows.iter();
    let further = patterns.flat_map(|pattern| search::find(pattern, host_paths));
    let trees = own.into_iter().chain(further.filter_map(|path| mounts::further(&path))).collect();
    Ok(Found { program, version, root, trees, is_system, real, stamp, image: None })
}

/// Resolves links. They belong to the host: no sandboxed program can write them.
fn real_path(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("cannot be read: {error}"))
}

/// The program that a shim starts.
fn resolve_shim(shim: &Path, args: &[String]) -> Result<PathBuf, String> {
    let answer = PathBuf::from(query::real_location(shim, args)?);
    if !answer.is_absolute() {
        return Err(format!(
            "its location query printed '{}', which is not an absolute path",
            answer.display()
        ));
    }
    match shim.file_name() {
        Some(name) if answer.is_dir() => Ok(answer.join("bin").join(name)),
        _ => Ok(answer),
    }
}

fn version_of(
    path: &Path,
    real: &Path,
    rule: &VersionRule,
    host_paths: &HostPaths,
) -> Result<String, String> {
    let known = host_paths
        .version_cache
        .as_deref()
        .and_then(|cache| version_cache::get(cache, real, &rule.args));
    if let Some(version) = known {
        return Ok(version);
    }
    let version = query::version(path, rule, query::PROBE_TIMEOUT)?;
    if let Some(cache) = &host_paths.version_cache {
        version_cache::put(cache, real, &rule.args, &version);
    }
    Ok(version)
}

#[cfg(test)]
impl Found {
    /// A toolchain that was not probed.
    pub(crate) fn unprobed(program: &str) -> Self {
        Self {
            program: program.into(),
            version: "1.2.3".to_owned(),
            root: "/usr".into(),
            trees: Vec::new(),
            is_system: true,
            real: program.into(),
            stamp: FileStamp::of(Path::new("/")).expect("there is a root"),
            image: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(text: &str) -> Toolchain {
        toml::from_str(&format!("programs = ['x']\nversion = {{ args = ['--version'] }}\n{text}"))
            .unwrap()
    }

    fn write_script(path: &Path, script: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_shim_on_the_path_is_resolved_to_its_program() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let root = home.join(".toys/versions/1.2");
        write_script(&root.join("bin/toy"), "echo toy 1.2.3");
        let shim = home.join(".toys/shims/toy");
        write_script(&shim, &format!("[ \"$1\" = --where ] && echo {}", root.display()));
        let host_paths = HostPaths {
            path: vec![shim.parent().unwrap().to_owned()],
            home: Some(home.clone()),
            ..HostPaths::default()
        };
        let found = probe("toy", &toolchain("real = ['--where']"), &host_paths);
        let found = found.into_iter().next().unwrap().unwrap();
        assert_eq!((found.program, found.root.clone()), (root.join("bin/toy"), root.clone()));
        assert_eq!(found.version, "1.2.3");
        assert_eq!((found.trees[0].host.clone(), found.is_system), (root, false));
    }

    #[test]
    fn an_old_version_and_a_missing_program_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let toy = folder.path().join("toy");
        write_script(&toy, "echo 1.9");
        let unusable = |candidate: &str, rule: &str| match probe(
            candidate,
            &toolchain(rule),
            &HostPaths::default(),
        )
        .remove(0)
        {
            Err(ProbeError::Unusable(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let reason = unusable(toy.to_str().unwrap(), "least = '1.10'");
        assert!(reason.ends_with("it is version 1.9, but at least 1.10 is required"), "{reason}");
        assert!(unusable("/usr", "").contains("not an executable file"));
        let absent = probe("/usr/bin/no-such-toy", &toolchain(""), &HostPaths::default());
        assert_eq!(absent, [Err(ProbeError::NotFound)]);
    }

    #[test]
    fn a_link_through_another_directory_is_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("env");
        std::os::unix::fs::symlink("/usr/bin/env", &link).unwrap();
        let found = probe(link.to_str().unwrap(), &toolchain(""), &HostPaths::default()).remove(0);
        let found = found.unwrap();
        assert_eq!((found.program.as_path(), found.trees.len()), (Path::new("/usr/bin/env"), 0));
    }
}
