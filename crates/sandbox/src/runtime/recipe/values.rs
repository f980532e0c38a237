//! Value types of a recipe, each checked when it is parsed.

use sandbox_core::{Glob, LanguageChoice, RelativePath};
use serde::Deserialize;

use crate::runtime::argument::{Argument, Values};
use crate::runtime::version;

/// A language name as requests write it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Name(pub(super) String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<LanguageChoice>() {
            Ok(choice) if choice.name() == text => Ok(Self(text)),
            _ => Err(format!(
                "'{text}' is not a language name: small letters, digits and + # - _ . only"
            )),
        }
    }
}

/// A path below the work directory or beside the recipe.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct FilePath(pub(crate) RelativePath);

impl TryFrom<String> for FilePath {
    type Error = sandbox_core::InvalidPath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// The name of an image.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ImageName(pub(crate) String);

impl TryFrom<String> for ImageName {
    type Error = sandbox_images::InvalidReference;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse::<sandbox_images::Reference>().map(|_| Self(text))
    }
}

/// The name of an environment variable.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct VariableName(pub(crate) String);

impl TryFrom<String> for VariableName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.contains(['=', '\0']) {
            return Err(format!("'{}' is not a variable name", text.escape_debug()));
        }
        Ok(Self(text))
    }
}

/// A command whose first word can be started.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<Argument>")]
pub(crate) struct Command(pub(crate) Vec<Argument>);

impl Command {
    /// Program and arguments, with every placeholder replaced.
    pub(crate) fn expand(&self, values: &Values<'_>) -> Vec<String> {
        let mut command = Vec::new();
        for argument in &self.0 {
            argument.expand_into(values, &mut command);
        }
        command
    }
}

impl TryFrom<Vec<Argument>> for Command {
    type Error = &'static str;

    fn try_from(arguments: Vec<Argument>) -> Result<Self, Self::Error> {
        match arguments.first() {
            Some(first) if first.can_be_started() => Ok(Self(arguments)),
            _ => {
                Err("a command begins with {program}, {root}/, an absolute path, or ./ and a name")
            }
        }
    }
}

/// At least one program to look for.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Programs(pub(crate) Vec<String>);

impl TryFrom<Vec<String>> for Programs {
    type Error = &'static str;

    fn try_from(programs: Vec<String>) -> Result<Self, Self::Error> {
        if programs.is_empty() {
            return Err("a toolchain needs at least one program to look for");
        }
        Ok(Self(programs))
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(super) struct Artefacts(pub(super) Vec<Glob>);

impl TryFrom<Vec<String>> for Artefacts {
    type Error = String;

    fn try_from(patterns: Vec<String>) -> Result<Self, String> {
        if patterns.is_empty() {
            return Err("a compile stage needs at least one artefact".to_owned());
        }
        let globs: Result<_, _> = patterns.iter().map(|pattern| pattern.parse()).collect();
        globs.map(Self).map_err(|error: sandbox_core::InvalidGlob| error.to_string())
    }
}

/// The minimum version of a toolchain.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MinVersion(pub(crate) String);

impl TryFrom<String> for MinVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match version::find(&text, None) {
            Some(found) if found == text => Ok(Self(text)),
            _ => Err(format!("'{text}' is not a version such as 3.9")),
        }
    }
}

/// Patterns of files in a project.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Patterns(pub(crate) Vec<Glob>);

impl TryFrom<Vec<String>> for Patterns {
    type Error = String;

    fn try_from(patterns: Vec<String>) -> Result<Self, String> {
        let globs: Result<_, _> = patterns.iter().map(|pattern| pattern.parse()).collect();
        globs.map(Self).map_err(|error: sandbox_core::InvalidGlob| error.to_string())
    }
}
