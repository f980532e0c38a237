use sandbox_core::Stage;
use serde::Deserialize;

use super::values::Command;
use crate::runtime::limits::LimitDefaults;

/// Files that are built once for a toolchain and then mounted into every execution that uses it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    /// Description for progress messages.
    pub(crate) about: String,
    /// Builds it, in a sandbox of its own. The contents of `layer`, below the work directory, are stored.
    pub(crate) command: Command,
    #[serde(default)]
    pub(crate) limits: LimitDefaults,
    /// Stages that mount it.
    stages: Vec<StageName>,
    /// Whether each stage gets a private writable overlay of it.
    #[serde(default)]
    pub(crate) writable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StageName {
    Compile,
    Run,
    /// Warm runtimes of either stage.
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

    /// Whether warm runtimes mount it.
    pub(crate) fn is_shown_to_warm(&self) -> bool {
        self.stages.contains(&StageName::Warm)
    }
}

/// Mount point of a layer inside.
pub(crate) fn place(language: &str, layer: &str) -> String {
    format!("/opt/layers/{language}-{layer}")
}
