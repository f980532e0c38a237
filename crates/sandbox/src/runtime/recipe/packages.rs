use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::values::VariableName;

/// A package manager that this library variables how to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageManager {
    Pip,
    Npm,
    Cargo,
}

/// The package manager of a language, and where programs find installed packages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Packages {
    pub(crate) manager: PackageManager,
    /// The interpreter of the manager, if it is not the toolchain's program.
    pub(crate) runs_with: Option<PathBuf>,
    /// Mount point of the packages.
    inside: Inside,
    /// Variables that programs need to find them.
    #[serde(default)]
    environment: BTreeMap<VariableName, String>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Inside(PathBuf);

impl Packages {
    pub(crate) fn inside(&self) -> &Path {
        &self.inside.0
    }

    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let owned = |(name, value): (&VariableName, &String)| (name.0.clone(), value.clone());
        self.environment.iter().map(owned).collect()
    }
}

impl TryFrom<String> for Inside {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = text.strip_prefix('/').is_some_and(|rest| {
            !rest.is_empty() && rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
        });
        // In a writable directory the program could replace the packages.
        let writable =
            ["/work", "/tmp", "/dev", "/proc"].iter().any(|top| Path::new(&text).starts_with(top));
        if plain && !writable {
            Ok(Self(text.into()))
        } else {
            Err(
                "packages must be mounted at a plain absolute path outside /work, /tmp, /dev and /proc",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_mounted_outside_writable_directories() {
        for path in ["/opt/packages", "/node_modules", "/workshop"] {
            assert!(Inside::try_from(path.to_owned()).is_ok(), "{path}");
        }
        for path in ["", "/", "opt", "/opt/../x", "/opt//x", "/work/x", "/tmp", "/proc/x"] {
            assert!(Inside::try_from(path.to_owned()).is_err(), "{path}");
        }
    }
}
