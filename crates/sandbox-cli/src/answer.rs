//! What commands print that run no program.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::errors::Failure;

/// For programs, and for people who look.
pub(crate) fn as_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(escape_controls(text.map_err(|error| Failure::ours(&error))?) + "\n")
}

/// The same JSON with DEL and the C1 control characters (U+0080 to U+009F) written as `\u00XX`. JSON allows them raw inside
/// strings, where a terminal would obey them; the others are escaped by every writer.
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

/// To standard output, or the reason why not.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let printed = io::stdout().lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_back_as_it_was_and_holds_no_control_character() {
        let text: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        let json = as_json(&text).unwrap();
        let is_control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!json.contains(is_control), "{json:?}");
        assert!(json.contains("\\u007f") && json.contains("\\u009b"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
