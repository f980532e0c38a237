//! Finds the files of this host that match a candidate of a recipe.

use std::path::{Path, PathBuf};

use sandbox_core::Glob;

use super::host_paths::HostPaths;
use crate::runtime::version;

/// The files that match a candidate, the preferred one first: for a bare name the first one on `PATH`, for a pattern every
/// match, the newest version first.
pub(crate) fn find(candidate: &str, host_paths: &HostPaths) -> Vec<PathBuf> {
    if !candidate.contains('/') {
        let found = host_paths.path.iter().map(|directory| directory.join(candidate));
        return found.filter(|path| path.exists()).take(1).collect();
    }
    let Some(path) = expand(candidate, host_paths) else {
        return Vec::new();
    };
    if !candidate.contains('*') {
        return if path.exists() { vec![path] } else { Vec::new() };
    }
    let mut found = matches(&path);
    found.sort_by(|left, right| {
        let (left, right) = (left.to_string_lossy(), right.to_string_lossy());
        version::compare(&right, &left).then_with(|| left.cmp(&right))
    });
    found
}

/// The directories of the host that match these patterns; `{root}` is the toolchain's root.
pub(crate) fn directories(patterns: &[String], root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for pattern in patterns {
        let path = match pattern.strip_prefix("{root}/") {
            Some(rest) => root.join(rest),
            None => PathBuf::from(pattern),
        };
        let mut matching = matches(&path);
        matching.sort();
        // A link leads to a directory that another pattern matches, or to none with packages.
        matching.retain(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()));
        for path in matching {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Replaces `~` and `{toolchains}`; `None` if that directory is not known.
fn expand(candidate: &str, host_paths: &HostPaths) -> Option<PathBuf> {
    if let Some(rest) = candidate.strip_prefix("~/") {
        return Some(host_paths.home.as_ref()?.join(rest));
    }
    if let Some(rest) = candidate.strip_prefix("{toolchains}/") {
        return Some(host_paths.toolchains.as_ref()?.join(rest));
    }
    Some(PathBuf::from(candidate))
}

/// Every path that matches a pattern, in which `*` matches within one name.
fn matches(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern {
        let name = part.to_string_lossy();
        let next = |directory: PathBuf| {
            if name.contains('*') { listed(&directory, &name) } else { vec![directory.join(part)] }
        };
        found = found.into_iter().flat_map(next).collect();
    }
    found.retain(|path| path.exists());
    found
}

fn listed(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let (Ok(glob), Ok(entries)) = (pattern.parse::<Glob>(), std::fs::read_dir(directory)) else {
        return Vec::new();
    };
    let fits = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| glob.matches(name))
    };
    entries.flatten().map(|entry| entry.path()).filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_gives_the_newest_first() {
        let home = tempfile::tempdir().unwrap();
        for version in ["3.9.1", "3.11.7", "3.10.2", "other"] {
            let bin = home.path().join("versions").join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            if version != "other" {
                std::fs::write(bin.join("toy"), "").unwrap();
            }
        }
        let host_paths = HostPaths { home: Some(home.path().to_owned()), ..HostPaths::default() };
        let found = find("~/versions/*/bin/toy", &host_paths);
        let versions: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(home.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            versions,
            ["versions/3.11.7/bin/toy", "versions/3.10.2/bin/toy", "versions/3.9.1/bin/toy"]
        );
        assert!(
            find("~/versions/*/bin/toy", &HostPaths::default()).is_empty(),
            "no home directory"
        );
    }

    #[test]
    fn a_bare_name_is_the_first_match_on_the_path() {
        let path = tempfile::tempdir().unwrap();
        std::fs::write(path.path().join("toy"), "").unwrap();
        let host_paths = HostPaths {
            path: vec!["/nonexistent".into(), path.path().to_owned(), "/usr/bin".into()],
            ..HostPaths::default()
        };
        assert_eq!(find("toy", &host_paths), [path.path().join("toy")]);
        assert_eq!(find("env", &host_paths), [PathBuf::from("/usr/bin/env")]);
        assert!(find("no-such-toy", &host_paths).is_empty());
        assert_eq!(find("/usr/bin/env", &host_paths), [PathBuf::from("/usr/bin/env")]);
        assert!(find("/usr/bin/no-such-toy", &host_paths).is_empty());
    }

    #[test]
    fn only_existing_package_directories_are_found() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["lib/toy3.9/site", "lib/toy3.10/site", "lib/other/site"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::fs::write(at("lib/file"), "").unwrap();
        std::os::unix::fs::symlink("other", at("lib/toy3.1")).unwrap();
        let patterns =
            ["{root}/lib/toy3*/site", "{root}/lib/file", "{root}/lib/toy3.1", "/no/such"];
        let patterns = patterns.map(ToOwned::to_owned);
        let found = directories(&patterns, root.path());
        let wanted = ["lib/toy3.1/site", "lib/toy3.10/site", "lib/toy3.9/site"];
        assert_eq!(found, wanted.map(at));
    }
}
