//! Errors of building a sandbox: which step failed, and the kernel's error.

use rustix::io::Errno;
use sandbox_protocol::notice::StepFailure;

/// A step of building or running a sandbox that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not {step}")]
pub struct StepError {
    /// The step, as the rest of "could not …".
    pub step: String,
    /// The kernel's error.
    #[source]
    pub cause: Errno,
}

impl From<StepError> for StepFailure {
    fn from(error: StepError) -> Self {
        Self { step: error.step, errno: error.cause.raw_os_error() }
    }
}

impl From<StepFailure> for StepError {
    fn from(failure: StepFailure) -> Self {
        const VALID: std::ops::RangeInclusive<i32> = 1..=4095;
        let errno = Some(failure.errno).filter(|errno| VALID.contains(errno));
        Self { step: failure.step, cause: errno.map_or(Errno::IO, Errno::from_raw_os_error) }
    }
}

/// Adds the step to the error of a system call.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_way_to_the_supervisor() {
        let error = StepError { step: "mount /proc".into(), cause: Errno::PERM };
        let failure = StepFailure::from(error.clone());
        assert_eq!((failure.step.as_str(), failure.errno), ("mount /proc", 1));
        assert_eq!(StepError::from(failure), error);
        for errno in [0, -1, i32::MIN, 4096, i32::MAX] {
            let failure = StepFailure { step: String::new(), errno };
            assert_eq!(StepError::from(failure).cause, Errno::IO);
        }
    }
}
