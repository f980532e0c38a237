use std::fmt;
use std::str::FromStr;

use crate::{ExecutionRecord, StoreError};

/// A place in a listing, between two executions: which came last, by the order of listings. Clients
/// hand it back as they got it, and what is accepted meanwhile does not move it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// In microseconds since 1970.
    pub(crate) created_at: i64,
    /// Tells those apart that were accepted in the same microsecond.
    pub(crate) id: String,
}

impl Cursor {
    pub(crate) fn after(execution: &ExecutionRecord) -> Self {
        Self { created_at: execution.created_at.timestamp_micros(), id: execution.id.clone() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        text.split_once('.')
            .and_then(|(time, id)| Some(Self { created_at: time.parse().ok()?, id: id.to_owned() }))
            .ok_or(StoreError::Cursor)
    }
}
