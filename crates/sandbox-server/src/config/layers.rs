//! Values before they are understood: each a text with its origin, the later layer winning.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use super::origin::Origin;
use super::setting::{self, SETTINGS, VARIABLE_PREFIX};
use super::{ConfigError, Surroundings};

/// Names the configuration file and so cannot stand in it.
const FILE_VARIABLE: &str = "SANDBOXD_CONFIG";

/// A value as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(super) text: String,
    pub(super) origin: Origin,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.origin)
    }
}

/// What one source says, or several on top of each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    values: BTreeMap<&'static str, Written>,
}

impl Layer {
    pub(super) fn set(&mut self, name: &'static str, text: String, origin: Origin) {
        self.values.insert(name, Written { text, origin });
    }

    /// What the other layer says counts more.
    pub(super) fn overlay(&mut self, other: Self) {
        self.values.extend(other.values);
    }

    /// Understands a value, or says who wrote it and what is wrong.
    pub(super) fn read<T>(
        &self,
        name: &'static str,
        understand: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let written = self.values.get(name).expect("the layer of defaults has every setting");
        understand(&written.text).map_err(|reason| ConfigError::Invalid {
            origin: written.origin.clone(),
            name,
            reason,
        })
    }

    /// What is set, with names, in the order of the table of settings.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&'static str, &str, &Origin)> {
        SETTINGS.iter().filter_map(|setting| {
            let written = self.values.get(setting.name)?;
            Some((setting.name, written.text.as_str(), &written.origin))
        })
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &Written> {
        self.values.values()
    }
}

/// The lowest layer: every setting has a value in it.
pub(super) fn defaults(surroundings: &Surroundings, above: &Layer) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    // A default that cannot be found is no mistake where somebody said something better.
    for setting in SETTINGS.iter().filter(|setting| !above.values.contains_key(setting.name)) {
        layer.set(setting.name, setting.default_value(surroundings)?, Origin::Default);
    }
    Ok(layer)
}

/// The layer of the environment. A variable that begins as ours do and sets nothing is a spelling
/// mistake that would otherwise go unnoticed.
pub(super) fn variables(all: &[(OsString, OsString)]) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    for (variable, value) in all {
        let variable = variable.to_string_lossy();
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else {
            continue;
        };
        if variable == FILE_VARIABLE {
            continue;
        }
        let origin = Origin::Variable(variable.clone().into_owned());
        let Some(setting) = setting::named(&name.to_ascii_lowercase()) else {
            return Err(ConfigError::Unknown { origin, name: name.to_ascii_lowercase() });
        };
        // `SANDBOXD_listen` would be a second way to say the same.
        if variable != setting.variable() {
            return Err(ConfigError::Unknown { origin, name: name.to_owned() });
        }
        let Some(value) = value.to_str() else {
            let reason = "is not text".to_owned();
            return Err(ConfigError::Invalid { origin, name: setting.name, reason });
        };
        layer.set(setting.name, value.to_owned(), origin);
    }
    Ok(layer)
}

/// The file that the environment names.
pub(super) fn file_variable(all: &[(OsString, OsString)]) -> Option<&OsString> {
    all.iter().find(|(variable, _)| variable == FILE_VARIABLE).map(|(_, value)| value)
}
