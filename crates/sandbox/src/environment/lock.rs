use sandbox_core::PackageSpec;
use serde::{Deserialize, Serialize};

use crate::runtime::{PackageManager, Runtime};
use crate::store::{Key, KeyBuilder};

/// Which packages exactly: every one that is needed, its version, and the hash of what was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The language.
    pub language: String,
    /// Its version.
    pub version: String,
    /// Who fetched and installed.
    pub(crate) manager: PackageManager,
    /// What was asked for, sorted.
    pub requested: Vec<PackageSpec>,
    /// What that came to, sorted by name.
    pub packages: Vec<LockedPackage>,
    /// Names of those that came as source and were built.
    pub from_source: Vec<String>,
    /// The same in the manager's own format, for fetching exactly this again.
    pub(crate) document: String,
}

/// One package of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackage {
    /// Its name as the index writes it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its file: the algorithm, and its value as the manager writes it.
    pub hash: String,
}

/// Under which the lock for a request is kept: the same packages asked for once more, with whatever
/// is installed on the host unchanged.
pub(super) fn request_key(
    runtime: &Runtime,
    commands: &[String],
    specs: &[PackageSpec],
    owner: Option<&str>,
) -> Key {
    let key = begin("package lock", runtime, commands, owner);
    specs.iter().fold(key, |key, spec| key.part("package", spec.as_str())).finish()
}

/// What every key depends on: the toolchain, the commands that fetch and install, and the owner, if packages
/// are not shared.
fn begin(purpose: &str, runtime: &Runtime, commands: &[String], owner: Option<&str>) -> KeyBuilder {
    let mut key = KeyBuilder::new(purpose).part("runtime", runtime.identity());
    if let Some(owner) = owner {
        key = key.part("owner", owner);
    }
    commands.iter().fold(key, |key, command| key.part("command", command))
}

impl Lock {
    /// Under which the installed packages are kept. As a rule, what was asked for is not part of it: two
    /// requests that come to the same packages share one layer.
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
    fn the_same_files_are_the_same_layer_whoever_asked() {
        let runtime = unprobed("python");
        let key = |lock: Lock| lock.layer_key(&runtime, &["install".to_owned()], None);
        assert_eq!(key(lock(&["six"], &[])), key(lock(&["six>=1"], &[])));
        let mut other = lock(&["six"], &[]);
        other.packages[0].hash = "sha256:01".to_owned();
        assert_ne!(key(lock(&["six"], &[])), key(other));
    }

    #[test]
    fn owners_do_not_share_what_is_kept_for_one_of_them() {
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
    fn what_was_built_beside_other_code_is_shared_with_those_who_asked_for_that_code() {
        let runtime = unprobed("python");
        let key = |lock: Lock| lock.layer_key(&runtime, &[], None);
        // The code of another package could change what is built, and remove its own traces.
        assert_ne!(key(lock(&["six"], &["six"])), key(lock(&["evil", "six"], &["six"])));
        assert_eq!(key(lock(&["six"], &["six"])), key(lock(&["six"], &["six"])));
    }
}
