//! The files of the host that a sandbox must mount for a toolchain.

use std::path::{Component, Path, PathBuf};

use sandbox_core::Tree;

use super::host_paths::HostPaths;

/// The directory of the host that every sandbox mounts.
const SYSTEM_ROOT: &str = "/usr";
/// Paths under which it is visible inside.
const SYSTEM_PATHS: &[&str] = &[SYSTEM_ROOT, "/bin", "/sbin"];

/// Whether a program, by its resolved path, is in the directory that every sandbox mounts.
pub(crate) fn is_system(real: &Path) -> bool {
    real.starts_with(SYSTEM_ROOT)
}

/// Whether a path, with every link that it leads through, exists inside as well.
pub(crate) fn is_reachable_inside(path: &Path) -> bool {
    let mut path = path.to_owned();
    // The kernel follows at most 40 links too.
    for _ in 0..40 {
        if !SYSTEM_PATHS.iter().any(|shown| path.starts_with(shown)) {
            return false;
        }
        let Ok(target) = path.read_link() else {
            return true;
        };
        if target.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        path.set_file_name(target);
    }
    false
}

/// The root directory of a program: the parent of its `bin`, or else the directory that contains it.
pub(crate) fn root_of(program: &Path) -> PathBuf {
    let directory = program.parent().unwrap_or(Path::new("/"));
    match directory.file_name().and_then(|name| name.to_str()) {
        Some("bin" | "sbin") => directory.parent().unwrap_or(directory).to_owned(),
        _ => directory.to_owned(),
    }
}

/// The mount for a toolchain outside the system directory: its whole root directory, or only the program if that directory
/// contains more than a toolchain.
pub(crate) fn tree(program: &Path, root: &Path, host_paths: &HostPaths) -> Tree {
    let shown = match installed_in(program, host_paths) {
        Some(directory) => directory,
        None if is_private_to_toolchain(root, host_paths.home.as_deref()) => root.to_owned(),
        None => program.to_owned(),
    };
    Tree { host: shown.clone(), inside: shown, copy_on_write: false }
}

/// The mount for a further file or directory of a recipe, unless every sandbox mounts it.
pub(crate) fn further(path: &Path) -> Option<Tree> {
    let host = path.canonicalize().ok()?;
    let shown = SYSTEM_PATHS.iter().any(|shown| path.starts_with(shown));
    (!shown).then(|| Tree { host, inside: path.to_owned(), copy_on_write: false })
}

/// The directory of a language among the toolchains that `runtimes --install` installed. All of it belongs to the
/// toolchain, including packages outside the program's root.
fn installed_in(program: &Path, host_paths: &HostPaths) -> Option<PathBuf> {
    let toolchains = host_paths.toolchains.as_ref()?.canonicalize().ok()?;
    let language = program.strip_prefix(&toolchains).ok()?.iter().next()?;
    Some(toolchains.join(language))
}

/// Whether a directory contains only a toolchain. A home, its parents, a hidden directory at its top (`~/.local`,
/// `~/.cargo`, `~/.config`) and a directory directly below `/` can contain private data.
fn is_private_to_toolchain(root: &Path, home: Option<&Path>) -> bool {
    let names = root.components().filter(|part| matches!(part, Component::Normal(_))).count();
    if names < 2 {
        return false;
    }
    let Some(home) = home else { return true };
    if home.starts_with(root) {
        return false;
    }
    match root.strip_prefix(home) {
        Ok(below) => {
            let mut names = below.iter();
            let hidden = names.next().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            !hidden || names.next().is_some()
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_mounted_completely_and_a_home_never() {
        let shown = |program: &str| {
            let program = Path::new(program);
            let host_paths = HostPaths { home: Some("/home/ada".into()), ..HostPaths::default() };
            tree(program, &root_of(program), &host_paths).host
        };
        for (program, host) in [
            ("/home/ada/.pyenv/versions/3.11.7/bin/python3.11", "/home/ada/.pyenv/versions/3.11.7"),
            ("/home/ada/miniforge/bin/python3", "/home/ada/miniforge"),
            ("/opt/go/bin/go", "/opt/go"),
            ("/opt/tool/zig", "/opt/tool"),
            ("/home/ada/bin/toy", "/home/ada/bin/toy"),
            ("/home/ada/.local/bin/toy", "/home/ada/.local/bin/toy"),
            ("/home/ada/.cargo/bin/toy", "/home/ada/.cargo/bin/toy"),
            ("/home/bin/toy", "/home/bin/toy"),
            ("/opt/bin/toy", "/opt/bin/toy"),
            ("/toy", "/toy"),
        ] {
            assert_eq!(shown(program), Path::new(host), "{program}");
        }
    }

    #[test]
    fn an_installed_toolchain_is_mounted_with_its_packages() {
        let directory = tempfile::tempdir().unwrap();
        let toolchains = directory.path().canonicalize().unwrap();
        let program = toolchains.join("toy/modules/compiler/bin/toy");
        let host_paths = HostPaths { toolchains: Some(toolchains.clone()), ..HostPaths::default() };
        assert_eq!(tree(&program, &root_of(&program), &host_paths).host, toolchains.join("toy"));
    }

    #[test]
    fn a_link_through_another_directory_is_not_reachable_inside() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("env");
        std::os::unix::fs::symlink("/usr/bin/env", &link).unwrap();
        assert!(!is_reachable_inside(&link));
        assert!(is_reachable_inside(Path::new("/usr/bin/env")));
    }
}
