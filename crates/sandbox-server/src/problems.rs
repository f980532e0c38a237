//! Problems that several modules report.

use std::fmt::Display;

use sandbox_api::{Code, Problem};

/// The problem with a field of a request.
pub(crate) fn invalid(field: &str, reason: impl Display) -> Problem {
    Problem::new(Code::InvalidField, format!("{field}: {reason}"))
}
