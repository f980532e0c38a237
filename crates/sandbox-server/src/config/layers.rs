//! Layers of unparsed values, each with its source. A later layer overrides an earlier one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::setting::{self, SETTINGS, VARIABLE_PREFIX};
use super::{ConfigError, HostInfo};

/// The variable that names the configuration file. It is not a setting, since the file cannot name itself.
const FILE_VARIABLE: &str = "SANDBOXD_CONFIG";

/// Where the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// No source sets it.
    Default,
    /// This line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// This variable of the environment.
    Variable(String),
    /// This flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// An unparsed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawValue {
    pub(super) text: String,
    pub(super) source: Source,
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.source)
    }
}

/// The values of one source, or of several merged ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    values: BTreeMap<&'static str, RawValue>,
}

impl Layer {
    pub(super) fn set(&mut self, name: &'static str, text: String, source: Source) {
        self.values.insert(name, RawValue { text, source });
    }

    /// Overrides values with those of another layer.
    pub(super) fn overlay(&mut self, other: Self) {
        self.values.extend(other.values);
    }

    /// Parses a value. An error names its source.
    pub(super) fn parse<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let raw = self.values.get(name).expect("the layer of defaults has every setting");
        parse(&raw.text).map_err(|reason| ConfigError::Invalid {
            set_by: raw.source.clone(),
            name,
            reason,
        })
    }

    /// The values with the names of their settings, in the order of [`SETTINGS`].
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&'static str, &str, &Source)> {
        SETTINGS.iter().filter_map(|setting| {
            let raw = self.values.get(setting.name)?;
            Some((setting.name, raw.text.as_str(), &raw.source))
        })
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &RawValue> {
        self.values.values()
    }
}

/// The layer of defaults, for the settings that `above` lacks.
pub(super) fn defaults(host: &HostInfo, above: &Layer) -> Result<Layer, ConfigError> {
    let mut layer = Layer::default();
    // Settings with a value need no default: the host may not provide one.
    for setting in SETTINGS.iter().filter(|setting| !above.values.contains_key(setting.name)) {
        layer.set(setting.name, setting.default_value(host)?, Source::Default);
    }
    Ok(layer)
}

/// The layer of environment variables. A variable with the prefix that names no setting is an error: it is probably a
/// typing mistake.
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
        let set_by = Source::Variable(variable.clone().into_owned());
        let Some(setting) = setting::named(&name.to_ascii_lowercase()) else {
            return Err(ConfigError::Unknown { set_by, name: name.to_ascii_lowercase() });
        };
        // Rejects other spellings, such as `SANDBOXD_listen`.
        if variable != setting.variable() {
            return Err(ConfigError::Unknown { set_by, name: name.to_owned() });
        }
        let Some(value) = value.to_str() else {
            let reason = "is not valid UTF-8".to_owned();
            return Err(ConfigError::Invalid { set_by, name: setting.name, reason });
        };
        layer.set(setting.name, value.to_owned(), set_by);
    }
    Ok(layer)
}

/// The configuration file that the environment names.
pub(super) fn file_variable(all: &[(OsString, OsString)]) -> Option<&OsString> {
    all.iter().find(|(variable, _)| variable == FILE_VARIABLE).map(|(_, value)| value)
}
