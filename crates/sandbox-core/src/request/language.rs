use std::fmt;
use std::str::FromStr;

use super::InvalidRequest;

/// A language by name or alias, optionally with a version: `python`, `python@3.11`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LanguageChoice {
    name: String,
    version: Option<String>,
}

impl LanguageChoice {
    /// The name or alias, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, if one is required.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

impl FromStr for LanguageChoice {
    type Err = InvalidRequest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        let fits = |part: &str, extra: &str| {
            !part.is_empty()
                && part.len() <= 32
                && part.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        if !fits(name, "+#-_.") || !version.is_none_or(|version| fits(version, ".-_+")) {
            return Err(InvalidRequest::Language(text.to_owned()));
        }
        Ok(Self { name: name.to_ascii_lowercase(), version: version.map(ToOwned::to_owned) })
    }
}

impl fmt::Display for LanguageChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}
