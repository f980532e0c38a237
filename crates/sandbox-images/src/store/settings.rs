use std::ffi::OsString;
use std::path::PathBuf;

use crate::ImageError;

const PLACE: &str = "SANDBOX_RUN_IMAGES";
/// Where a machine keeps what its services need.
const OF_THE_MACHINE: &str = "/var/lib/sandbox-run/images";

/// Where the environment says that images lie.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the configuration code that finds the user's images"
)]
pub(super) fn directory() -> Result<PathBuf, ImageError> {
    choose(|name| std::env::var_os(name), rustix::process::geteuid().is_root())
}

fn choose(value: impl Fn(&str) -> Option<OsString>, root: bool) -> Result<PathBuf, ImageError> {
    // An empty value is how a shell script says that a variable is not meant.
    let value = |name| value(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name| value(name).filter(|path| path.is_absolute());
    match value(PLACE) {
        Some(path) if path.is_absolute() => return Ok(path),
        Some(path) => return Err(ImageError::RelativePlace(path.display().to_string())),
        None => {}
    }
    // By the XDG base directory specification, where a relative path does not count.
    if let Some(data) = absolute("XDG_DATA_HOME") {
        return Ok(data.join("sandbox-run/images"));
    }
    if root {
        return Ok(OF_THE_MACHINE.into());
    }
    let home = absolute("HOME").ok_or(ImageError::NoPlace)?;
    Ok(home.join(".local/share/sandbox-run/images"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn place(variables: &[(&str, &str)], root: bool) -> Result<PathBuf, ImageError> {
        let find = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        choose(|name| find(name).map(|(_, value)| OsString::from(value)), root)
    }

    #[test]
    fn the_first_that_names_a_place_wins() {
        let (home, data) = (("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data"));
        for (variables, root, wanted) in [
            (&[home][..], false, "/home/ada/.local/share/sandbox-run/images"),
            (&[home], true, OF_THE_MACHINE),
            (&[home, data], false, "/data/sandbox-run/images"),
            (&[home, data], true, "/data/sandbox-run/images"),
            (&[home, data, (PLACE, "/i")], true, "/i"),
            (&[home, (PLACE, "")], true, OF_THE_MACHINE),
        ] {
            assert_eq!(place(variables, root).unwrap(), Path::new(wanted));
        }
        assert!(matches!(place(&[], false), Err(ImageError::NoPlace)));
        assert!(matches!(place(&[(PLACE, "i")], true), Err(ImageError::RelativePlace(_))));
    }
}
