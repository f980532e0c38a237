use std::fmt;
use std::str::FromStr;

/// A path inside the work directory: relative, without `..`, plain text.
///
/// Validated here, so that no later code has to check whether a name leads out of its directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

/// A path that may not be used inside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path '{}' cannot be used inside the sandbox: {reason}", path.escape_debug())]
pub struct InvalidPath {
    path: String,
    reason: &'static str,
}

/// The kernel's own bounds: `NAME_MAX`, and `PATH_MAX` less the directory that the path is joined
/// to.
const MAX_NAME_LEN: usize = 255;
const MAX_PATH_LEN: usize = 2048;

impl RelativePath {
    /// The path as text, its parts joined by single slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the path, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last name.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The extension: what follows the last dot of the last name.
    pub fn extension(&self) -> Option<&str> {
        let (stem, extension) = self.file_name().rsplit_once('.')?;
        (!stem.is_empty()).then_some(extension)
    }
}

impl FromStr for RelativePath {
    type Err = InvalidPath;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| InvalidPath { path: path.to_owned(), reason };
        if path.starts_with('/') {
            return Err(refuse("it must be relative to the work directory"));
        }
        if path.len() > MAX_PATH_LEN {
            return Err(refuse("it is too long"));
        }
        if path.chars().any(char::is_control) {
            return Err(refuse("it contains a control character"));
        }
        let names: Vec<&str> =
            path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.is_empty() {
            return Err(refuse("it names no file"));
        }
        if names.contains(&"..") {
            return Err(refuse("it contains '..'"));
        }
        if names.iter().any(|name| name.len() > MAX_NAME_LEN) {
            return Err(refuse("one of its names is too long"));
        }
        Ok(Self(names.join("/")))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dots_and_double_slashes_are_folded() {
        let path: RelativePath = "./src//lib/./main.py".parse().unwrap();
        assert_eq!(path.as_str(), "src/lib/main.py");
        assert_eq!(path.extension(), Some("py"));
        assert_eq!(".profile".parse::<RelativePath>().unwrap().extension(), None);
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let long = "x".repeat(256);
        for path in ["", ".", "/etc/passwd", "../x", "a/../../x", "a/..", "a\nb", "a\0b", &long] {
            assert!(path.parse::<RelativePath>().is_err(), "{path:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_path_has_only_plain_names(text in "[a-c./]{0,12}") {
            if let Ok(path) = text.parse::<RelativePath>() {
                for name in path.components() {
                    prop_assert!(!name.is_empty() && name != "." && name != "..");
                }
            }
        }
    }
}
