//! Writes the result of a command to standard output, as text or JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::errors::Failure;

/// Pretty-printed JSON with a final newline and no control characters.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(escape_controls(text.map_err(|error| Failure::internal(&error))?) + "\n")
}

/// Escapes DEL and the C1 control characters (U+0080 to U+009F) as `\u00XX`. JSON allows them raw inside strings, and a
/// terminal interprets them; serde_json escapes all other control characters.
pub(crate) fn escape_controls(json: String) -> String {
    let is_raw = |letter: char| letter.is_control() && letter != '\n';
    if !json.contains(is_raw) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for letter in json.chars() {
        if is_raw(letter) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// Writes to standard output.
pub(crate) fn print(text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Failure> {
    let printed = io::stdout().lock().write_all(text.as_ref());
    printed.map_err(|error| Failure::printing(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_and_contains_no_control_character() {
        let text: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let json = to_json(&text).unwrap();
        let is_control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!json.contains(is_control), "{json:?}");
        assert!(json.contains("\\u007f") && json.contains("\\u009b"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
