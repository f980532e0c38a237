use std::error::Error;
use std::io;

use sandbox_core::{BackendError, InvalidRequest};

use crate::{RecipeError, Refusal, ResolveError};

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A recipe has a mistake.
    #[error("a recipe cannot be used")]
    Recipe(#[from] RecipeError),
    /// The walls cannot be built on this host.
    #[error("the backend cannot be started")]
    Backend(#[from] BackendError),
}

/// Why a request was not executed. All of these can be cured by another request or another host; a
/// failure of our own during an execution is a report instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The language is not known, or not available here.
    #[error(transparent)]
    Language(#[from] ResolveError),
    /// The request does not fit together.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
    /// There is nothing to compile.
    #[error(
        "there is nothing to compile: {language} needs a file that ends in {}",
        endings(extensions)
    )]
    NoSources {
        /// The language.
        language: String,
        /// The extensions of its sources.
        extensions: Vec<String>,
    },
    /// A hook said no.
    #[error("refused: {}", .0.reason())]
    Refused(Refusal),
    /// The backend cannot carry the request out as it stands.
    #[error("{0}")]
    Unworkable(String),
    /// No thread could be started to watch over the execution.
    #[error("cannot start a thread for the execution")]
    Thread(#[source] io::Error),
}

fn endings(extensions: &[String]) -> String {
    let endings: Vec<String> = extensions.iter().map(|extension| format!(".{extension}")).collect();
    endings.join(" or ")
}

impl From<Refusal> for ExecuteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// An error and all its causes in one line, for a report that leaves this process.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let addition = error.to_string();
        // Some errors repeat their cause in their own message.
        if !text.ends_with(&addition) {
            text.push_str(": ");
            text.push_str(&addition);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_chain_is_told_once() {
        let cause = io::Error::other("no space left");
        let error =
            BackendError::Failed { step: "cannot write the cgroup".into(), cause: Box::new(cause) };
        assert_eq!(
            with_causes(&StartError::Backend(error)),
            "the backend cannot be started: cannot write the cgroup: no space left"
        );
    }
}
