//! Paths of the command line, as host paths and as paths below the work directory.

use std::path::{Component, Path, PathBuf};

use sandbox::RelativePath;

use crate::errors::Failure;

/// Paths below the work directory for the named files, relative to their deepest common directory: `src/main.py
/// src/lib/util.py` keep their relative paths, and a single file keeps only its name.
pub(super) fn below_common_directory(sources: &[&Path]) -> Result<Vec<String>, Failure> {
    let sources = sources.iter().map(|source| absolute(source)).collect::<Result<Vec<_>, _>>()?;
    let mut common = sources.first().and_then(|first| first.parent());
    while let Some(directory) = common {
        if sources.iter().all(|source| source.starts_with(directory)) {
            break;
        }
        common = directory.parent();
    }
    let common = common.unwrap_or(Path::new("/"));
    let inside = |source: &PathBuf| {
        let path = source.strip_prefix(common).unwrap_or(source);
        path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
            Failure::Usage(format!(
                "the name of '{}' is not UTF-8: rename the file",
                source.display()
            ))
        })
    };
    sources.iter().map(inside).collect()
}

/// The absolute path, with `.` and `..` removed lexically. Links are not resolved: the result only names a place in the
/// sandbox, for which the text is what the user meant.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(path)
        .map_err(|error| Failure::Usage(format!("invalid path '{}': {error}", path.display())))?;
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                folded.pop();
            }
            Component::CurDir => {}
            other => folded.push(other),
        }
    }
    Ok(folded)
}

/// Checks a path of the command line as one below the work directory.
pub(super) fn work_path(path: &str) -> Result<String, Failure> {
    let path: RelativePath = path.parse().map_err(|error| Failure::usage(&error))?;
    Ok(path.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sources: &[&str], inside: &[&str]) {
        let sources: Vec<_> = sources.iter().map(Path::new).collect();
        assert_eq!(below_common_directory(&sources).unwrap(), inside);
    }

    #[test]
    fn files_keep_their_relative_paths() {
        check(&["src/main.py"], &["main.py"]);
        check(&["main.py", "lib/util.py"], &["main.py", "lib/util.py"]);
        check(&["src/main.py", "src/util.py"], &["main.py", "util.py"]);
        check(&["/a/b/main.c", "/a/c/util.c"], &["b/main.c", "c/util.c"]);
        check(&["x/../main.py", "./util.py"], &["main.py", "util.py"]);
    }
}
