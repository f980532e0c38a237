//! Problems that several modules report.

use std::fmt::Display;

use sandbox_api::{Code, Problem};
use sandbox_scheduler::SchedulerError;

/// The problem with a field of a request.
pub(crate) fn invalid(field: &str, reason: impl Display) -> Problem {
    Problem::new(Code::InvalidField, format!("{field}: {reason}"))
}

/// The problem that a client is told of when the scheduler refuses or fails an operation.
pub(crate) fn of_scheduler(error: &SchedulerError) -> Problem {
    let code = match error {
        SchedulerError::Stopping | SchedulerError::NotStored | SchedulerError::Store => {
            Code::Unavailable
        }
        SchedulerError::TooManyUnfinished { .. }
        | SchedulerError::TooManyWaitingBytesOfClient { .. } => Code::QuotaExceeded,
        SchedulerError::TooManyWaitingBytes { .. } | SchedulerError::QueueFull { .. } => {
            Code::QueueFull
        }
        SchedulerError::WorkspaceInUse { .. } => Code::WorkspaceInUse,
        SchedulerError::MemoryLimitTooLarge { .. } => return invalid("memory_limit_mb", error),
        SchedulerError::LanguageNeedsTooMuchMemory { .. } => Code::LanguageUnavailable,
        SchedulerError::IdempotencyConflict => Code::IdempotencyConflict,
        SchedulerError::NotFound(_) => Code::NotFound,
        SchedulerError::InvalidCursor => Code::InvalidField,
        _ => Code::Internal,
    };
    Problem::new(code, error.to_string())
}
