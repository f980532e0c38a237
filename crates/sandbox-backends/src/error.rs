use sandbox_core::BackendError;

/// An internal error at a step.
pub(crate) fn failed(
    step: &str,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> BackendError {
    BackendError::Failed { step: step.to_owned(), cause: cause.into() }
}
