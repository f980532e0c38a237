use sandbox::{PackageError, ResolveError, with_causes};
use sandbox_api::{Code, Problem};

/// The problem that a client is told of. Internal errors are logged instead.
pub(super) fn of(error: &PackageError) -> Problem {
    let invalid =
        |field: &str| Problem::new(Code::InvalidField, format!("{field}: {}", with_causes(error)));
    match error {
        PackageError::NoManager { .. } => invalid("language"),
        PackageError::Spec { .. } => invalid("packages"),
        PackageError::Language(ResolveError::UnknownLanguage { .. }) => {
            Problem::new(Code::UnknownLanguage, with_causes(error))
        }
        PackageError::Language(_) | PackageError::ManagerMissing { .. } => {
            Problem::new(Code::LanguageUnavailable, with_causes(error))
        }
        PackageError::Refused(_) | PackageError::Limit(_) | PackageError::Changed(_) => {
            Problem::new(Code::PackagesRefused, with_causes(error))
        }
        PackageError::Cancelled => {
            Problem::new(Code::NotFound, "it was removed before it was built")
        }
        PackageError::NoSuchEnvironment(name) => {
            Problem::new(Code::NotFound, format!("there is no environment '{name}'"))
        }
        other => {
            tracing::error!(reason = with_causes(other), "packages cannot be had");
            Problem::new(Code::Internal, "the server cannot keep or build packages; see its log")
        }
    }
}
