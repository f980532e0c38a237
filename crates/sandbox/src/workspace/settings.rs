use std::ffi::OsString;
use std::path::PathBuf;

use sandbox_core::WorkspaceQuota;

use super::WorkspaceError;

const DIRECTORY_VARIABLE: &str = "SANDBOX_RUN_WORKSPACES";
const SIZE_VARIABLE: &str = "SANDBOX_RUN_WORKSPACE_SIZE";

/// Settings of workspaces from environment variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) directory: PathBuf,
    pub(super) quota: WorkspaceQuota,
}

impl Settings {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the configuration code that finds the user's workspaces"
    )]
    pub(super) fn from_environment() -> Result<Self, WorkspaceError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Result<Self, WorkspaceError> {
        // Shell scripts use an empty value for an unset variable.
        let value = |name| value(name).filter(|value| !value.is_empty());
        let absolute = |name| value(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = match value(DIRECTORY_VARIABLE).map(PathBuf::from) {
            Some(path) if path.is_absolute() => path,
            Some(path) => {
                return Err(WorkspaceError::RelativeDirectory(path.display().to_string()));
            }
            None => {
                // The XDG base directory specification ignores relative paths.
                let home = || Some(absolute("HOME")?.join(".local/share"));
                let data = absolute("XDG_DATA_HOME").or_else(home);
                data.ok_or(WorkspaceError::NoDirectory)?.join("sandbox-run/workspaces")
            }
        };
        let quota = match value(SIZE_VARIABLE) {
            None => WorkspaceQuota::default(),
            Some(text) => {
                WorkspaceQuota::of(text.to_string_lossy().parse().map_err(WorkspaceError::Size)?)
            }
        };
        Ok(Self { directory, quota })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_core::ByteSize;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, WorkspaceError> {
        Settings::from_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_first_variable_that_names_a_directory_wins() {
        let (home, data) = (("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data"));
        for (variables, directory) in [
            (&[home][..], "/home/ada/.local/share/sandbox-run/workspaces"),
            (&[home, data], "/data/sandbox-run/workspaces"),
            (&[home, data, (DIRECTORY_VARIABLE, "/w")], "/w"),
            (&[home, (DIRECTORY_VARIABLE, "")], "/home/ada/.local/share/sandbox-run/workspaces"),
        ] {
            assert_eq!(settings(variables).unwrap().directory, PathBuf::from(directory));
        }
        assert!(matches!(settings(&[]), Err(WorkspaceError::NoDirectory)));
        assert!(matches!(
            settings(&[(DIRECTORY_VARIABLE, "w")]),
            Err(WorkspaceError::RelativeDirectory(_))
        ));
    }

    #[test]
    fn the_size_is_parsed_like_other_sizes() {
        let with_size = |size| settings(&[("HOME", "/home/ada"), (SIZE_VARIABLE, size)]);
        assert_eq!(with_size("512M").unwrap().quota.bytes, ByteSize::mib(512));
        assert!(matches!(with_size("much"), Err(WorkspaceError::Size(_))));
    }
}
