use sandbox_core::Stage;
use serde::Deserialize;

use super::values::Command;
use crate::runtime::limits::LimitDefaults;

/// Something that is made once for a toolchain and then shown to every execution that uses it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    /// What it is, for the person who waits for it.
    pub(crate) about: String,
    /// Makes it, in a sandbox of its own: what is then in `layer`, below the work directory, is kept.
    pub(crate) command: Command,
    #[serde(default)]
    pub(crate) limits: LimitDefaults,
    /// Which stages see it.
    stages: Vec<StageName>,
    /// Whether these may write over it, each for itself.
    #[serde(default)]
    pub(crate) writable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StageName {
    Compile,
    Run,
    /// Runtimes that are started ahead of either.
    Warm,
}

impl Layer {
    pub(crate) fn is_shown_to(&self, stage: Stage) -> bool {
        self.stages.iter().any(|name| match name {
            StageName::Compile => stage == Stage::Compile,
            StageName::Run => stage == Stage::Run,
            StageName::Warm => false,
        })
    }

    /// Whether runtimes see it that are started before there is a program.
    pub(crate) fn is_shown_to_warm(&self) -> bool {
        self.stages.contains(&StageName::Warm)
    }
}

/// Where a layer is shown inside.
pub(crate) fn place(language: &str, layer: &str) -> String {
    format!("/opt/layers/{language}-{layer}")
}
