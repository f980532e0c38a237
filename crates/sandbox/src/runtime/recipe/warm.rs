//! How a runtime is started before its program is known.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Variables;
use super::values::{Command, FilePath};
use crate::runtime::argument::{Argument, Text};

/// A command that starts a runtime, which then waits for a program. It is told of it as docs/recipes.md
/// says, and behaves as the command of its stage would.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Warm {
    pub(crate) command: Command,
    /// Files that it needs to start, below the work directory; gone when the program comes.
    #[serde(default)]
    pub(crate) files: BTreeMap<FilePath, Text>,
    /// Variables beside those of the stage.
    #[serde(default)]
    pub(crate) environment: Variables,
    /// What is put in front of variables that hold lists of directories.
    #[serde(default)]
    pub(crate) prepend: Variables,
    /// Whether it can be copied once it has started.
    #[serde(default)]
    pub(crate) forks: bool,
}

impl Warm {
    /// Every text of it that may hold placeholders.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        let arguments = self.command.0.iter_mut().filter_map(Argument::text_mut);
        let variables = self.environment.values_mut().chain(self.prepend.values_mut());
        arguments.chain(self.files.values_mut()).chain(variables)
    }
}
