use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A package and a version constraint in the syntax of its manager: `six`, `numpy==2.*`,
/// `requests[socks]>=2,<3`, `lodash@4`, `@types/node@^22`.
///
/// It is a name in an index and never an option, a path or a URL, so packages come only from the
/// index that the host is configured to use. The manager applies its own, stricter rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PackageSpec(String);

/// The name of an environment: a set of packages that was installed once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct EnvironmentName(String);

/// A text that is not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a valid package: {reason}", text.escape_debug())]
pub struct InvalidPackage {
    text: String,
    reason: &'static str,
}

/// A text that is not an environment name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{}' is not a name for an environment: letters, digits and . _ - only, at most 64, and a letter \
     or digit first",
    text.escape_debug()
)]
pub struct InvalidEnvironmentName {
    text: String,
}

/// Longer than any real name with its version constraint.
const MAX_SPEC_LEN: usize = 200;
const MAX_NAME_LEN: usize = 64;

impl PackageSpec {
    /// The specification as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Splits a comma-separated list. A comma may also separate two bounds of one version
    /// (`requests>=2,<3`) or two extras (`requests[socks,security]`).
    pub fn split(list: &str) -> Result<Vec<Self>, InvalidPackage> {
        let mut specs: Vec<String> = Vec::new();
        for piece in list.split(',').map(str::trim) {
            match specs.last_mut() {
                Some(before) if continues(before, piece) => {
                    before.push(',');
                    before.push_str(piece);
                }
                _ => specs.push(piece.to_owned()),
            }
        }
        specs.iter().map(|spec| spec.parse()).collect()
    }
}

fn continues(before: &str, piece: &str) -> bool {
    let in_extras = before.contains('[') && !before.contains(']');
    in_extras || piece.starts_with(['<', '>', '=', '!', '~'])
}

impl FromStr for PackageSpec {
    type Err = InvalidPackage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| Err(InvalidPackage { text: text.to_owned(), reason });
        if text.len() > MAX_SPEC_LEN {
            return refuse("it is too long");
        }
        if !text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '@') {
            return refuse("it begins with a letter or digit");
        }
        let is_usual =
            |letter: char| letter.is_ascii_alphanumeric() || "._-+*^~<>=!|,[]@/".contains(letter);
        if !text.chars().all(is_usual) {
            return refuse("it is a name and the versions that will do, without spaces");
        }
        // One slash separates a scope from a name; anything else would be a path or a URL.
        let slashes = text.matches('/').count();
        if slashes > 1 || (slashes == 1) != text.starts_with('@') || text.contains("..") {
            return refuse("paths and URLs are not taken, only names in the package index");
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for EnvironmentName {
    type Err = InvalidEnvironmentName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins_well || text.len() > MAX_NAME_LEN || !text.chars().all(is_usual) {
            return Err(InvalidEnvironmentName { text: text.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl EnvironmentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PackageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for EnvironmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PackageSpec {
    type Error = InvalidPackage;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for EnvironmentName {
    type Error = InvalidEnvironmentName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PackageSpec> for String {
    fn from(spec: PackageSpec) -> Self {
        spec.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(list: &str) -> Vec<String> {
        PackageSpec::split(list).unwrap().into_iter().map(String::from).collect()
    }

    #[test]
    fn a_list_is_separated_by_commas() {
        assert_eq!(split("numpy==2.*,requests"), ["numpy==2.*", "requests"]);
        assert_eq!(split("six, lodash@4,@types/node@^22"), ["six", "lodash@4", "@types/node@^22"]);
    }

    #[test]
    fn a_comma_within_a_package_does_not_separate() {
        assert_eq!(split("requests>=2,<3,six"), ["requests>=2,<3", "six"]);
        assert_eq!(
            split("requests[socks,security]>=2,!=2.5,six"),
            ["requests[socks,security]>=2,!=2.5", "six"]
        );
    }

    #[test]
    fn options_paths_and_urls_are_refused() {
        for text in [
            "",
            "-r",
            "--index-url=x",
            "six -i",
            "six\n-i",
            "six;x",
            "./six",
            "/six",
            "../six",
            "six/x",
            "https://a/b.whl",
            "git+https://a",
            "six@file:x",
            "@a/../b",
            "a..b",
            "@a",
            "six\0",
            "a b",
            "$(x)",
            "`x`",
            "'six'",
            "@a/b/c",
        ] {
            assert!(text.parse::<PackageSpec>().is_err(), "{text:?}");
        }
        assert!("a".repeat(201).parse::<PackageSpec>().is_err());
        for list in ["", ",", "six,", "six,,five", ",<3"] {
            assert!(PackageSpec::split(list).is_err(), "{list:?}");
        }
    }

    #[test]
    fn an_environment_has_a_plain_name() {
        for text in ["data", "web-2.1_x", "7"] {
            assert!(text.parse::<EnvironmentName>().is_ok(), "{text}");
        }
        let long = "a".repeat(65);
        for text in ["", ".", "..", ".x", "-x", "a/b", "a b", "a\0", "é", &long] {
            assert!(text.parse::<EnvironmentName>().is_err(), "{text:?}");
        }
    }
}
