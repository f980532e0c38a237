use sandbox_core::PackageSpec;
use serde::{Deserialize, Serialize};

use crate::runtime::{PackageManager, Runtime};
use crate::store::{Key, KeyBuilder};

/// An exact set of packages: every package with its version and the hash of the fetched file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The language.
    pub language: String,
    /// Its version.
    pub version: String,
    /// The package manager.
    pub(crate) manager: PackageManager,
    /// The requested packages, sorted.
    pub requested: Vec<PackageSpec>,
    /// The resolved packages, sorted by name.
    pub packages: Vec<LockedPackage>,
    /// Names of packages that were built from source.
    pub from_source: Vec<String>,
    /// The manager's own lock file, for fetching exactly these packages again.
    pub(crate) document: String,
}

/// One package of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// Its name in the index.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its file, in the manager's format: algorithm and value.
    pub hash: String,
}

/// The key of the lock for a request. The same request with an unchanged toolchain has the same key.
pub(super) fn request_key(
    runtime: &Runtime,
    commands: &[String],
    specs: &[PackageSpec],
    owner: Option<&str>,
) -> Key {
    let key = begin("package lock", runtime, commands, owner);
    specs.iter().fold(key, |key, spec| key.part("package", spec.as_str())).finish()
}

/// The parts of every key: the toolchain, the commands that fetch and install, and the owner if packages are not shared.
fn begin(purpose: &str, runtime: &Runtime, commands: &[String], owner: Option<&str>) -> KeyBuilder {
    let mut key = KeyBuilder::new(purpose).part("runtime", runtime.identity());
    if let Some(owner) = owner {
        key = key.part("owner", owner);
    }
    commands.iter().fold(key, |key, command| key.part("command", command))
}

impl Lock {
    /// The key of the installed packages. The request is usually not part of it: requests that resolve to the same packages
    /// share one layer.
    pub(super) fn layer_key(
        &self,
        runtime: &Runtime,
        commands: &[String],
        owner: Option<&str>,
    ) -> Key {
        let key = begin("packages", runtime, commands, owner);
        let parts = self.manager.identity(self);
        parts.iter().fold(key, |key, part| key.part("part", part)).finish()
    }

    /// `six 1.17.0, numpy 2.1.0`, shortened where there are many.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 8;
        let mut names: Vec<String> = self
            .packages
            .iter()
            .take(SHOWN)
            .map(|package| format!("{} {}", package.name, package.version))
            .collect();
        if self.packages.len() > SHOWN {
            names.push(format!("{} more", self.packages.len() - SHOWN));
        }
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tests::unprobed;

    fn lock(requested: &[&str], from_source: &[&str]) -> Lock {
        Lock {
            language: "python".to_owned(),
            version: "3.11".to_owned(),
            manager: PackageManager::Pip,
            requested: requested.iter().map(|spec| spec.parse().unwrap()).collect(),
            packages: vec![LockedPackage {
                name: "six".to_owned(),
                version: "1.0".to_owned(),
                hash: "sha256:00".to_owned(),
            }],
            from_source: from_source.iter().map(|name| (*name).to_owned()).collect(),
            document: String::new(),
        }
    }

    #[test]
    fn the_same_files_are_the_same_layer_whatever_was_requested() {
        let runtime = unprobed("python");
        let key = |lock: Lock| lock.layer_key(&runtime, &["install".to_owned()], None);
        assert_eq!(key(lock(&["six"], &[])), key(lock(&["six>=1"], &[])));
        let mut other = lock(&["six"], &[]);
        other.packages[0].hash = "sha256:01".to_owned();
        assert_ne!(key(lock(&["six"], &[])), key(other));
    }

    #[test]
    fn layers_of_different_owners_have_different_keys() {
        let runtime = unprobed("python");
        let keys = |owner| {
            let specs = ["six".parse().unwrap()];
            let layer = lock(&["six"], &[]).layer_key(&runtime, &[], owner);
            [layer, request_key(&runtime, &[], &specs, owner)]
        };
        let all = [keys(None), keys(Some("a")), keys(Some("b"))].concat();
        assert_eq!(std::collections::BTreeSet::from_iter(all).len(), 6);
        assert_eq!(keys(Some("a")), keys(Some("a")));
    }

    #[test]
    fn packages_built_from_source_are_shared_only_for_the_same_request() {
        let runtime = unprobed("python");
        let key = |lock: Lock| lock.layer_key(&runtime, &[], None);
        // The code of another package could have changed the build without a trace.
        assert_ne!(key(lock(&["six"], &["six"])), key(lock(&["evil", "six"], &["six"])));
        assert_eq!(key(lock(&["six"], &["six"])), key(lock(&["six"], &["six"])));
    }
}
