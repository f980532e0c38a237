//! Errors of the building site: which step failed, and what the kernel said.

use rustix::io::Errno;

/// A step of building or running a sandbox that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not {step}")]
pub struct StepError {
    /// What was being done, as the rest of "could not …".
    pub step: String,
    /// What the kernel said, its number kept.
    #[source]
    pub cause: Errno,
}

/// Names the step a system call belongs to.
pub(crate) trait AtStep<T> {
    /// Adds the step to the error.
    fn at(self, step: &str) -> Result<T, StepError>;
}

impl<T> AtStep<T> for Result<T, Errno> {
    fn at(self, step: &str) -> Result<T, StepError> {
        self.map_err(|cause| StepError { step: step.to_owned(), cause })
    }
}

impl<T> AtStep<T> for std::io::Result<T> {
    fn at(self, step: &str) -> Result<T, StepError> {
        self.map_err(|error| {
            let cause = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
            StepError { step: step.to_owned(), cause }
        })
    }
}
