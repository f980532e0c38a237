//! Named environments: one small file for each, in the user's data directory or in another one.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sandbox_core::EnvironmentName;

use super::{Environment, PackageError};

/// A directory of environments. It is created when the first one is built.
#[derive(Clone, Debug)]
pub struct EnvironmentDirectory {
    directory: PathBuf,
    /// Owner of the installed packages; `None` if they are shared.
    package_cache_owner: Option<String>,
}

impl EnvironmentDirectory {
    /// Uses this directory, which must contain nothing else.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, package_cache_owner: None }
    }

    /// Separates the packages of these environments from those of other owners.
    #[must_use]
    pub fn with_package_cache_owner(mut self, owner: Option<String>) -> Self {
        self.package_cache_owner = owner;
        self
    }

    pub(super) fn package_cache_owner(&self) -> Option<&str> {
        self.package_cache_owner.as_deref()
    }

    /// The directory of the user.
    #[expect(clippy::disallowed_methods, reason = "this is the configuration code that asks")]
    pub fn of_user() -> Result<Self, PackageError> {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
        let missing = || std::io::Error::new(ErrorKind::NotFound, "set HOME or XDG_DATA_HOME");
        let data = data.ok_or_else(missing).map_err(PackageError::file("find", "the home"))?;
        Ok(Self::at(data.join("sandbox-run/environments")))
    }

    /// Writes an environment atomically, replacing an existing one.
    pub(super) fn write(&self, environment: &Environment) -> Result<(), PackageError> {
        let directory = &self.directory;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory).map_err(PackageError::file("create", directory))?;
        let path = self.path(&environment.name);
        let text = serde_json::to_vec_pretty(environment).expect("an environment is plain data");
        let written = tempfile::NamedTempFile::new_in(directory).and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        });
        written.map_err(PackageError::file("write", path))
    }

    /// All environments, sorted by name.
    pub fn list(&self) -> Result<Vec<Environment>, PackageError> {
        self.names()?.iter().map(|name| self.find(name)).collect()
    }

    /// An environment by name.
    pub fn find(&self, name: &EnvironmentName) -> Result<Environment, PackageError> {
        let path = self.path(name);
        match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(PackageError::NoSuchEnvironment(name.clone()))
            }
            Err(error) => Err(PackageError::file("read", path)(error)),
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| PackageError::file("parse", path)(error.into())),
        }
    }

    /// All names, sorted.
    pub fn names(&self) -> Result<Vec<EnvironmentName>, PackageError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(PackageError::file("list", &self.directory))?,
        };
        let name = |entry: std::fs::DirEntry| {
            entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()
        };
        let mut names: Vec<EnvironmentName> = entries.flatten().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// Removes an environment. Its packages stay in the store: other environments may share them.
    pub fn remove(&self, name: &EnvironmentName) -> Result<(), PackageError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(PackageError::NoSuchEnvironment(name.clone()))
            }
            removed => removed.map_err(PackageError::file("remove", path)),
        }
    }

    fn path(&self, name: &EnvironmentName) -> PathBuf {
        Path::new(&self.directory).join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Lock;
    use crate::runtime::PackageManager;

    fn environment(name: &str, version: &str) -> Environment {
        let lock = Lock {
            language: "python".to_owned(),
            version: version.to_owned(),
            manager: PackageManager::Pip,
            requested: Vec::new(),
            packages: Vec::new(),
            from_source: Vec::new(),
            document: String::new(),
        };
        Environment { name: name.parse().unwrap(), created_at: chrono::Utc::now(), lock }
    }

    #[test]
    fn an_environment_is_written_replaced_read_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let named = EnvironmentDirectory::at(root.path().join("new/environments"));
        assert!(named.names().unwrap().is_empty());
        for version in ["3.11", "3.12"] {
            let written = environment("data", version);
            named.write(&written).unwrap();
            assert_eq!(named.find(&written.name).unwrap(), written);
            assert_eq!(named.list().unwrap(), [written]);
        }
        named.write(&environment("a", "1")).unwrap();
        std::fs::write(named.directory.join("not an environment.json"), "").unwrap();
        let found = named.names().unwrap();
        assert_eq!(found.iter().map(EnvironmentName::as_str).collect::<Vec<_>>(), ["a", "data"]);
        named.remove(&found[1]).unwrap();
        for gone in [named.remove(&found[1]), named.find(&found[1]).map(drop)] {
            assert!(matches!(gone, Err(PackageError::NoSuchEnvironment(_))));
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_with_its_path() {
        let root = tempfile::tempdir().unwrap();
        let named = EnvironmentDirectory::at(root.path().to_owned());
        std::fs::write(root.path().join("x.json"), "{").unwrap();
        let error = named.find(&"x".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("x.json"), "{error}");
    }
}
