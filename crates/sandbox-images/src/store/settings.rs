use std::ffi::OsString;
use std::path::PathBuf;

use crate::ImageError;

const IMAGES_VARIABLE: &str = "SANDBOX_RUN_IMAGES";
/// The default directory of root.
const SYSTEM_DIRECTORY: &str = "/var/lib/sandbox-run/images";

/// Finds the directory of the default store from the environment.
#[expect(clippy::disallowed_methods, reason = "this is configuration code")]
pub(super) fn default_directory() -> Result<PathBuf, ImageError> {
    choose(|name| std::env::var_os(name), rustix::process::geteuid().is_root())
}

fn choose(value: impl Fn(&str) -> Option<OsString>, root: bool) -> Result<PathBuf, ImageError> {
    // An empty variable counts as unset, as in shell scripts.
    let value = |name| value(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name| value(name).filter(|path| path.is_absolute());
    match value(IMAGES_VARIABLE) {
        Some(path) if path.is_absolute() => return Ok(path),
        Some(path) => return Err(ImageError::RelativeDirectory(path.display().to_string())),
        None => {}
    }
    // The XDG base directory specification says to ignore relative paths.
    if let Some(data) = absolute("XDG_DATA_HOME") {
        return Ok(data.join("sandbox-run/images"));
    }
    if root {
        return Ok(SYSTEM_DIRECTORY.into());
    }
    let home = absolute("HOME").ok_or(ImageError::NoDirectory)?;
    Ok(home.join(".local/share/sandbox-run/images"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn chosen(variables: &[(&str, &str)], root: bool) -> Result<PathBuf, ImageError> {
        let find = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        choose(|name| find(name).map(|(_, value)| OsString::from(value)), root)
    }

    #[test]
    fn the_first_variable_with_a_directory_wins() {
        let (home, data) = (("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data"));
        for (variables, root, expected) in [
            (&[home][..], false, "/home/ada/.local/share/sandbox-run/images"),
            (&[home], true, SYSTEM_DIRECTORY),
            (&[home, data], false, "/data/sandbox-run/images"),
            (&[home, data], true, "/data/sandbox-run/images"),
            (&[home, data, (IMAGES_VARIABLE, "/i")], true, "/i"),
            (&[home, (IMAGES_VARIABLE, "")], true, SYSTEM_DIRECTORY),
        ] {
            assert_eq!(chosen(variables, root).unwrap(), Path::new(expected));
        }
        assert!(matches!(chosen(&[], false), Err(ImageError::NoDirectory)));
        assert!(matches!(
            chosen(&[(IMAGES_VARIABLE, "i")], true),
            Err(ImageError::RelativeDirectory(_))
        ));
    }
}
