use std::io;

use sandbox_core::{BackendError, InvalidRequest, InvalidVolume};

use crate::plan::PlanError;
use crate::{PackageError, RecipeError, Refusal, ResolveError, WorkspaceError};

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
    /// The packages cannot be had.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// The language's packages of the host cannot be hidden.
    #[error(
        "--no-host-packages is not supported for {language}: its recipe names no directories of packages"
    )]
    HostPackages {
        /// The language.
        language: String,
    },
    /// A volume may not be shared.
    #[error(transparent)]
    Volume(#[from] InvalidVolume),
    /// The workspace cannot be had.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The image cannot be had.
    #[error(transparent)]
    Image(#[from] sandbox_images::ImageError),
    /// No walls can be built around the image.
    #[error("the walls around the image cannot be built")]
    ImageBackend(#[source] BackendError),
    /// A hook said no.
    #[error("refused: {}", .0.reason())]
    Refused(Refusal),
    /// The backend cannot carry the request out as it stands.
    #[error("{0}")]
    Unsupported(String),
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
