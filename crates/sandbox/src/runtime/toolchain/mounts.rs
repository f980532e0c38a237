//! What of the host a sandbox must show for a toolchain to work.

use std::path::{Component, Path, PathBuf};

use sandbox_core::Tree;

use super::host_paths::HostPaths;

/// The one tree of the host that every sandbox shows.
const SHOWN_INSIDE: &str = "/usr";
/// Names under which it is shown.
const SHOWN_PATHS: &[&str] = &[SHOWN_INSIDE, "/bin", "/sbin"];

/// Whether a program, given by its real path, is in what every sandbox shows.
pub(crate) fn is_system(real: &Path) -> bool {
    real.starts_with(SHOWN_INSIDE)
}

/// Whether a path, and every link on the way from it to its file, is there inside as well.
pub(crate) fn is_reachable_inside(path: &Path) -> bool {
    let mut path = path.to_owned();
    // As many links as the kernel itself would follow.
    for _ in 0..40 {
        if !SHOWN_PATHS.iter().any(|shown| path.starts_with(shown)) {
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

/// The directory a program belongs to: what holds its `bin`, or else the directory it is in.
pub(crate) fn root_of(program: &Path) -> PathBuf {
    let directory = program.parent().unwrap_or(Path::new("/"));
    match directory.file_name().and_then(|name| name.to_str()) {
        Some("bin" | "sbin") => directory.parent().unwrap_or(directory).to_owned(),
        _ => directory.to_owned(),
    }
}

/// What to show of a toolchain that is not in the system's own tree: all of its root directory, or
/// only the program where that directory holds more than a toolchain.
pub(crate) fn tree(program: &Path, root: &Path, host_paths: &HostPaths) -> Tree {
    let shown = match installed_in(program, host_paths) {
        Some(directory) => directory,
        None if is_private_to_toolchain(root, host_paths.home.as_deref()) => root.to_owned(),
        None => program.to_owned(),
    };
    Tree { host: shown.clone(), inside: shown, copy_on_write: false }
}

/// A further file or directory that a recipe names, unless it is shown in any case.
pub(crate) fn further(path: &Path) -> Option<Tree> {
    let host = path.canonicalize().ok()?;
    let shown = SHOWN_PATHS.iter().any(|shown| path.starts_with(shown));
    (!shown).then(|| Tree { host, inside: path.to_owned(), copy_on_write: false })
}

/// The directory of a language among the toolchains that we installed: all that is there belongs to
/// the toolchain, packages beside the program's own included.
fn installed_in(program: &Path, host_paths: &HostPaths) -> Option<PathBuf> {
    let toolchains = host_paths.toolchains.as_ref()?.canonicalize().ok()?;
    let language = program.strip_prefix(&toolchains).ok()?.iter().next()?;
    Some(toolchains.join(language))
}

/// A home, what is above it, and a hidden directory at its top (`~/.local`, `~/.cargo`, `~/.config`)
/// hold what is nobody else's business. So does what lies directly below the root of the host.
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
    fn a_toolchain_is_shown_whole_and_a_home_never() {
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
    fn an_installed_toolchain_is_shown_with_the_packages_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let toolchains = directory.path().canonicalize().unwrap();
        let program = toolchains.join("toy/modules/compiler/bin/toy");
        let host_paths = HostPaths { toolchains: Some(toolchains.clone()), ..HostPaths::default() };
        assert_eq!(tree(&program, &root_of(&program), &host_paths).host, toolchains.join("toy"));
    }

    #[test]
    fn a_link_through_another_tree_does_not_lead_there_inside() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("env");
        std::os::unix::fs::symlink("/usr/bin/env", &link).unwrap();
        assert!(!is_reachable_inside(&link));
        assert!(is_reachable_inside(Path::new("/usr/bin/env")));
    }
}
