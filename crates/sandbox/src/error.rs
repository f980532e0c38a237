use std::io;

use sandbox_core::{BackendError, InvalidRequest, InvalidVolume};

use crate::plan::PlanError;
use crate::{PackageError, RecipeError, Refusal, ResolveError, WorkspaceError};

/// Why a sandbox could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A recipe is invalid.
    #[error("invalid recipe")]
    Recipe(#[from] RecipeError),
    /// The isolation backend cannot be started on this host.
    #[error("the isolation backend cannot be started")]
    Backend(#[from] BackendError),
}

/// Why a request was not executed. A different request or host would help; an internal error during an execution is a
/// report instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The language is unknown or not available on this host.
    #[error(transparent)]
    Language(#[from] ResolveError),
    /// Parts of the request contradict each other.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
    /// The request has no source file.
    #[error(
        "nothing to compile: {language} needs a file with the extension {}",
        endings(extensions)
    )]
    NoSources {
        /// The language.
        language: String,
        /// The extensions of its source files.
        extensions: Vec<String>,
    },
    /// The packages cannot be installed.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// Host packages cannot be hidden for this language.
    #[error(
        "--no-host-packages is not supported for {language}: its recipe names no directories of packages"
    )]
    HostPackages {
        /// The language.
        language: String,
    },
    /// A volume is not allowed.
    #[error(transparent)]
    Volume(#[from] InvalidVolume),
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The image cannot be used.
    #[error(transparent)]
    Image(#[from] sandbox_images::ImageError),
    /// The isolation backend cannot be started for the image.
    #[error("the isolation backend cannot be started for the image")]
    ImageBackend(#[source] BackendError),
    /// A hook refused the request.
    #[error("refused: {}", .0.reason())]
    Refused(Refusal),
    /// The backend does not support this request.
    #[error("{0}")]
    Unsupported(String),
    /// The thread for the execution could not be started.
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

impl From<PlanError> for ExecuteError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Request(error) => Self::Request(error),
            PlanError::NoSources { language, extensions } => {
                Self::NoSources { language, extensions }
            }
            PlanError::HostPackages { language } => Self::HostPackages { language },
        }
    }
}
