//! How to start a warm runtime: before its program is known.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Variables;
use super::values::{Command, FilePath};
use crate::runtime::argument::{Argument, Text};

/// The command that starts a warm runtime, which then waits for a program. docs/recipes.md describes how it receives the
/// program; from then on it behaves like the command of its stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Warm {
    pub(crate) command: Command,
    /// Files that it needs to start, below the work directory. They are removed before the program arrives.
    #[serde(default)]
    pub(crate) files: BTreeMap<FilePath, Text>,
    /// Variables in addition to those of the stage.
    #[serde(default)]
    pub(crate) environment: Variables,
    /// Values to prepend to variables that hold lists of directories.
    #[serde(default)]
    pub(crate) prepend: Variables,
    /// Whether it can be a zygote: forked after it has started.
    #[serde(default)]
    pub(crate) forks: bool,
}

impl Warm {
    /// Every text that can contain placeholders.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        let arguments = self.command.0.iter_mut().filter_map(Argument::text_mut);
        let variables = self.environment.values_mut().chain(self.prepend.values_mut());
        arguments.chain(self.files.values_mut()).chain(variables)
    }
}
