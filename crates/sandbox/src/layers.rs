//! Layers: files that make a toolchain faster, built once and mounted into every execution, such as a precompiled
//! standard library or a class-data archive.
//!
//! A layer is built in its own sandbox, which contains nothing of any request, and stored under a key of everything that
//! it depends on. Executions mount it read-only or below an overlay of their own, so no execution can change what the
//! next one sees.

use std::fmt::Write as _;
use std::path::PathBuf;

use sandbox_core::{
    Backend, BackendError, CancelToken, CollectedFile, Ending, Observer, StageOutcome, StreamKind,
    Tree, UsageSample,
};

use crate::plan::{self, LAYER_DIRECTORY};
use crate::runtime::{Layer, Runtime, layer_place};
use crate::store::{Key, KeyBuilder, LayerStore, LayerWriter, StoreError};

/// Why a layer is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    /// The execution that waited for it was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The build failed.
    #[error("preparing {language} ({about}) failed: {reason}")]
    NotMade { language: String, about: String, reason: String },
    /// The sandbox for the build failed.
    #[error("cannot prepare {language} ({about})")]
    Backend {
        language: String,
        about: String,
        #[source]
        cause: BackendError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Builds layers and keeps them in the store.
pub(crate) struct Layers<'a> {
    pub(crate) store: &'a LayerStore,
    pub(crate) backend: &'a dyn Backend,
}

impl Layers<'_> {
    /// The wanted layers. Builds those that are missing, and reports each to `progress`.
    pub(crate) fn trees(
        &self,
        runtime: &Runtime,
        is_wanted: impl Fn(&Layer) -> bool,
        progress: &mut dyn FnMut(&str),
        cancel: &CancelToken,
    ) -> Result<Vec<Tree>, LayerError> {
        let layers = runtime.recipe().layers.iter();
        layers
            .filter(|(_, layer)| is_wanted(layer))
            .map(|(name, layer)| {
                Ok(Tree {
                    host: self.path(runtime, name, layer, progress, cancel)?,
                    inside: layer_place(runtime.name(), name).into(),
                    copy_on_write: layer.writable,
                })
            })
            .collect()
    }

    fn path(
        &self,
        runtime: &Runtime,
        name: &str,
        layer: &Layer,
        progress: &mut dyn FnMut(&str),
        cancel: &CancelToken,
    ) -> Result<PathBuf, LayerError> {
        let plan = plan::layer(runtime, layer);
        let key = Self::key(runtime, name, &plan.process.command);
        if let Some(path) = self.store.path(&key) {
            return Ok(path);
        }
        progress(&format!("preparing {}: {} (once)", runtime.name(), layer.about));
        let about = format!("{} {}: {}", runtime.name(), runtime.version(), layer.about);
        self.store.build(&key, &about, |writer| {
            let outcome = self.backend.run(&plan, &mut DiscardOutput, cancel).map_err(|cause| {
                let (language, about) = (runtime.name().to_owned(), layer.about.clone());
                LayerError::Backend { language, about, cause }
            })?;
            if outcome.ending == Ending::Cancelled {
                return Err(LayerError::Cancelled);
            }
            write(writer, &outcome).map_err(|reason| LayerError::NotMade {
                language: runtime.name().to_owned(),
                about: layer.about.clone(),
                reason,
            })
        })
    }

    /// The isolation backend is not part of the key: a layer is made by the recipe and the toolchain alone, and no
    /// untrusted program takes part.
    fn key(runtime: &Runtime, name: &str, command: &[String]) -> Key {
        let mut key = KeyBuilder::new("layer")
            .part("language", runtime.name())
            .part("layer", name)
            .part("toolchain", runtime.identity());
        for argument in command {
            key = key.part("argument", argument);
        }
        key.finish()
    }
}

/// Writes the result of a build into the store, or returns why it cannot be used.
fn write(writer: &LayerWriter, outcome: &StageOutcome) -> Result<(), String> {
    if outcome.ending != Ending::Exited(0) {
        return Err(explain(outcome));
    }
    if outcome.files.is_empty() {
        return Err(format!("it left nothing in {LAYER_DIRECTORY}"));
    }
    if let Some(skipped) = outcome.skipped.first() {
        return Err(format!("it left '{}', and {}", skipped.path, skipped.reason));
    }
    for CollectedFile { path, contents, executable } in &outcome.files {
        let below = path.strip_prefix(LAYER_DIRECTORY).and_then(|path| path.strip_prefix('/'));
        let below = below.unwrap_or(path).parse();
        let below = below.map_err(|error: sandbox_core::InvalidPath| error.to_string())?;
        writer.file(&below, contents, *executable).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// How the build ended, with the last line that it printed.
fn explain(outcome: &StageOutcome) -> String {
    let mut reason = match outcome.ending {
        Ending::Exited(code) => format!("it exited with code {code}"),
        Ending::Signaled(signal) => format!("it was killed by signal {signal}"),
        Ending::TimedOut(_) => "it exceeded the time limit of the recipe".to_owned(),
        Ending::OutOfMemory => "it exceeded the memory limit of the recipe".to_owned(),
        Ending::TooMuchOutput => "it exceeded the output limit".to_owned(),
        Ending::TooManyFiles | Ending::TooMuchForWorkspace => {
            "its files exceed the maximum size of a layer".to_owned()
        }
        Ending::Cancelled => "it was cancelled".to_owned(),
    };
    let output = String::from_utf8_lossy(&outcome.output);
    if let Some(line) = output.lines().rfind(|line| !line.trim().is_empty()) {
        let _ = write!(reason, ": {}", line.trim());
    }
    reason
}

/// Ignores the events of our own stages.
pub(crate) struct DiscardOutput;

impl Observer for DiscardOutput {
    fn output(&mut self, _: StreamKind, _: &[u8]) {}
    fn usage(&mut self, _: UsageSample) {}
}
