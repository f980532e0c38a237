//! What commands print that run no program.

use std::io::{self, Write};

use serde::Serialize;

use crate::errors::Failure;

/// For programs, and for people who look.
pub(crate) fn as_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(|error| Failure::ours(&error))? + "\n")
}

/// To standard output, or the reason why not.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))
}
