//! The lines of a header, before anything is made of them.

use std::str::FromStr;

use super::canaries::Placeholder;

/// A mistake in the header of an attack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("attacks/{file}:{line}: {reason}")]
pub struct HeaderError {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) reason: String,
}

/// One `key: value` of a header, with the line it begins on.
pub(super) struct Entry {
    line: usize,
    key: String,
    pub(super) value: String,
}

/// The entries that were not asked for yet.
pub(super) struct Entries<'a> {
    file: &'a str,
    entries: Vec<Entry>,
}

impl<'a> Entries<'a> {
    pub(super) fn read(file: &'a str, source: &str) -> Result<Self, HeaderError> {
        let is_c = std::path::Path::new(file).extension().is_some_and(|extension| extension == "c");
        let mark = if is_c { "//" } else { "#" };
        let mut entries = Self { file, entries: Vec::new() };
        for (line, text) in (1..).zip(source.lines()) {
            let Some(text) = text.strip_prefix(mark) else {
                break;
            };
            if text.starts_with("  ") {
                match entries.entries.last_mut() {
                    Some(entry) => entry.value = format!("{} {}", entry.value, text.trim()),
                    None => return Err(entries.error(line, "there is nothing to go on with")),
                }
                continue;
            }
            let Some((key, value)) = text.split_once(':') else {
                return Err(entries.error(line, "this line is not 'key: value'"));
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if entries.entries.iter().any(|entry| entry.key == key) {
                return Err(entries.error(line, format!("there are two '{key}'")));
            }
            entries.entries.push(Entry { line, key, value });
        }
        Ok(entries)
    }

    fn error(&self, line: usize, reason: impl Into<String>) -> HeaderError {
        HeaderError { file: self.file.to_owned(), line, reason: reason.into() }
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(place))
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        self.take(key).map(|entry| entry.value)
    }

    pub(super) fn required(&mut self, key: &str) -> Result<Entry, HeaderError> {
        self.take(key)
            .filter(|entry| !entry.value.is_empty())
            .ok_or_else(|| self.error(1, format!("there is no '{key}'")))
    }

    pub(super) fn yes(&mut self, key: &str) -> Result<bool, HeaderError> {
        match self.take(key) {
            None => Ok(false),
            Some(entry) if entry.value == "yes" => Ok(true),
            Some(entry) => Err(self.error(entry.line, format!("'{key}' can only be yes"))),
        }
    }

    pub(super) fn list(&mut self, key: &str) -> Vec<String> {
        self.take(key).map(|entry| split_list(&entry.value)).unwrap_or_default()
    }

    pub(super) fn args(&mut self) -> Result<Vec<String>, HeaderError> {
        let Some(entry) = self.take("args") else {
            return Ok(Vec::new());
        };
        self.each(&entry, ' ', |arg| match arg.strip_prefix('{') {
            Some(_) => Placeholder::from_str(arg).map(|_| arg.to_owned()),
            None => Ok(arg.to_owned()),
        })
    }

    pub(super) fn each<T, E: ToString>(
        &self,
        entry: &Entry,
        separator: char,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, HeaderError> {
        let parts = entry.value.split(separator).map(str::trim);
        parts
            .map(|part| read(part).map_err(|error| self.error(entry.line, error.to_string())))
            .collect()
    }

    pub(super) fn read_value<T>(
        &self,
        entry: &Entry,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, HeaderError> {
        read(&entry.value).map_err(|reason| self.error(entry.line, reason))
    }

    pub(super) fn refuse_rest(&self) -> Result<(), HeaderError> {
        match self.entries.first() {
            Some(entry) => {
                Err(self.error(entry.line, format!("'{}' is not a key here", entry.key)))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn split_list(value: &str) -> Vec<String> {
    value.split(',').map(|part| part.trim().to_owned()).collect()
}
