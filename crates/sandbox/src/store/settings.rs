use std::ffi::OsString;
use std::path::PathBuf;

use sandbox_core::ByteSize;

use super::StoreError;

const STORE: &str = "SANDBOX_RUN_STORE";
const CACHE_SIZE: &str = "SANDBOX_RUN_CACHE_SIZE";
const PACKAGES_SIZE: &str = "SANDBOX_RUN_PACKAGES_SIZE";

/// Fits some hundred large programs, or many thousand small ones.
pub(super) const DEFAULT_CACHE_SIZE: ByteSize = ByteSize::mib(1024);

/// Fits some dozens of large sets of packages.
pub(super) const DEFAULT_PACKAGES_SIZE: ByteSize = ByteSize::mib(10 << 10);

/// Settings of the store from environment variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Its directory.
    pub(super) directory: PathBuf,
    /// Maximum size of all compiled programs; 0 turns the cache off.
    pub(super) max_compiled: ByteSize,
    /// Maximum size of all installed packages.
    pub(super) max_packages: ByteSize,
}

impl Settings {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the configuration code that finds the user's store"
    )]
    pub(super) fn from_environment() -> Result<Self, StoreError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Result<Self, StoreError> {
        // Shell scripts use an empty value for an unset variable.
        let value = |name| value(name).filter(|value| !value.is_empty());
        let absolute = |name| value(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = match value(STORE).map(PathBuf::from) {
            Some(path) if path.is_absolute() => path,
            Some(path) => {
                let reason = format!("'{}' is not an absolute path", path.display());
                return Err(StoreError::Setting { variable: STORE, reason });
            }
            None => {
                // The XDG base directory specification ignores relative paths.
                let home = || Some(absolute("HOME")?.join(".cache"));
                let cache =
                    absolute("XDG_CACHE_HOME").or_else(home).ok_or(StoreError::NoDirectory)?;
                cache.join("sandbox-run/store")
            }
        };
        let size = |variable, default| match value(variable) {
            None => Ok(default),
            Some(text) => {
                text.to_string_lossy().parse().map_err(|error: sandbox_core::InvalidSize| {
                    StoreError::Setting { variable, reason: error.to_string() }
                })
            }
        };
        let max_compiled = size(CACHE_SIZE, DEFAULT_CACHE_SIZE)?;
        let max_packages = size(PACKAGES_SIZE, DEFAULT_PACKAGES_SIZE)?;
        Ok(Self { directory, max_compiled, max_packages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, StoreError> {
        Settings::from_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_first_variable_that_names_a_place_wins() {
        let home = ("HOME", "/home/ada");
        let cache = ("XDG_CACHE_HOME", "/cache");
        let store = (STORE, "/store");
        for (variables, directory) in [
            (&[home][..], "/home/ada/.cache/sandbox-run/store"),
            (&[home, cache], "/cache/sandbox-run/store"),
            (&[home, cache, store], "/store"),
            (&[home, ("XDG_CACHE_HOME", "relative")], "/home/ada/.cache/sandbox-run/store"),
            (&[home, (STORE, "")], "/home/ada/.cache/sandbox-run/store"),
        ] {
            let settings = settings(variables).unwrap();
            assert_eq!(settings.directory, PathBuf::from(directory), "{variables:?}");
            assert_eq!(settings.max_compiled, DEFAULT_CACHE_SIZE);
        }
    }

    #[test]
    fn without_a_home_there_is_no_place() {
        for variables in [&[][..], &[("HOME", "relative")]] {
            assert!(matches!(settings(variables), Err(StoreError::NoDirectory)), "{variables:?}");
        }
    }

    #[test]
    fn a_place_that_depends_on_the_current_directory_is_refused() {
        let error = settings(&[("HOME", "/home/ada"), (STORE, "here")]).unwrap_err();
        assert!(error.to_string().starts_with("SANDBOX_RUN_STORE"), "{error}");
    }

    #[test]
    fn the_size_is_read_like_every_other() {
        let with_size = |size| settings(&[("HOME", "/home/ada"), (CACHE_SIZE, size)]);
        assert_eq!(with_size("512M").unwrap().max_compiled, ByteSize::mib(512));
        assert_eq!(with_size("0").unwrap().max_compiled, ByteSize::bytes(0));
        let error = with_size("much").unwrap_err();
        assert!(error.to_string().starts_with("SANDBOX_RUN_CACHE_SIZE"), "{error}");
    }
}
