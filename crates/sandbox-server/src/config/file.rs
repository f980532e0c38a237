//! The layer of `sandboxd.toml`: a flat table of settings, each with its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{getegid, geteuid};
use toml::{Spanned, Value};

use super::layers::Layer;
use super::layers::Source;
use super::{ConfigError, setting};

/// Reads a configuration file.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| ConfigError::Unreadable { path: path.to_owned(), cause })?;
    parse(path, &text)
}

/// Reads a configuration file from a default location. Refuses a file that another user could have
/// written: others may be able to write to the current directory, and settings decide what clients may do.
pub(super) fn read_if_trusted(path: &Path) -> Result<Layer, ConfigError> {
    let unreadable = |cause| ConfigError::Unreadable { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(unreadable)?;
    // Check the open file: the path could be replaced between a check and the read.
    let metadata = file.metadata().map_err(unreadable)?;
    let own = (geteuid().as_raw(), getegid().as_raw());
    if let Some(reason) = untrusted_reason((metadata.uid(), metadata.gid()), metadata.mode(), own) {
        return Err(ConfigError::Untrusted { path: path.to_owned(), reason });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    parse(path, &text)
}

/// Why a file with this owner and mode could have been written by another user, if it could.
fn untrusted_reason(
    (user, group): (u32, u32),
    mode: u32,
    (own_user, own_group): (u32, u32),
) -> Option<String> {
    if user != own_user && user != 0 {
        return Some(format!("it belongs to user {user}, not to this user or root"));
    }
    // The user's own group may write: many distributions give each user a private group.
    let by_group = mode & 0o020 != 0 && group != own_group && group != 0;
    (mode & 0o002 != 0 || by_group).then(|| "other users can write to it".to_owned())
}

fn parse(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let table: BTreeMap<Spanned<String>, Spanned<Value>> =
        toml::from_str(text).map_err(|error| ConfigError::NotToml {
            path: path.to_owned(),
            line: line_of(text, error.span()),
            reason: error.message().to_owned(),
        })?;
    let mut layer = Layer::default();
    for (key, value) in table {
        let line = line_of(text, Some(key.span()));
        let set_by = Source::File { path: path.to_owned(), line };
        let Some(setting) = setting::named(key.get_ref()) else {
            return Err(ConfigError::Unknown { set_by, name: key.into_inner() });
        };
        let Some(text) = to_text(value.get_ref()) else {
            let reason = "must be a string, a number or a list of strings".to_owned();
            return Err(ConfigError::Invalid { set_by, name: setting.name, reason });
        };
        layer.set(setting.name, text, set_by);
    }
    Ok(layer)
}

/// A value in the syntax of variables and flags.
fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Array(values) => {
            let texts: Option<Vec<_>> = values.iter().map(Value::as_str).collect();
            Some(texts?.join(","))
        }
        _ => None,
    }
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    1 + text.get(..start).unwrap_or_default().matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("sandboxd.toml"), text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_file_is_trusted_if_only_this_user_or_root_can_write_it() {
        let own = (1000, 1000);
        for (owner, mode) in
            [((1000, 1000), 0o644), ((1000, 1000), 0o664), ((0, 0), 0o644), ((1000, 50), 0o644)]
        {
            assert_eq!(untrusted_reason(owner, mode, own), None, "{owner:?} {mode:o}");
        }
        for (owner, mode) in [
            ((1001, 1000), 0o600),
            ((1000, 1000), 0o666),
            ((1000, 1000), 0o602),
            ((1000, 50), 0o664),
            ((0, 50), 0o664),
        ] {
            assert!(untrusted_reason(owner, mode, own).is_some(), "{owner:?} {mode:o}");
        }
    }

    #[test]
    fn values_are_read_with_their_lines() {
        let text = "# comment\nlisten = \"[::1]:1\"\nconcurrency = 3\ncors_origins = [\"a\", \"b\"]\n\
             otlp_sample = 0.25\n";
        let layer = parse(Path::new("x.toml"), text).expect("the values are valid");
        let found: Vec<_> = layer.values().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "3 (x.toml, line 3)",
                "a,b (x.toml, line 4)",
                "[::1]:1 (x.toml, line 2)",
                "0.25 (x.toml, line 5)"
            ]
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = error("listen = \"127.0.0.1:1\"\n\nlisten_on = \"x\"\n");
        assert!(error.starts_with("sandboxd.toml, line 3: unknown setting 'listen_on'"), "{error}");
    }

    #[test]
    fn invalid_toml_is_refused_with_its_line() {
        let error = error("burst = 1\nlisten = \n");
        assert!(error.starts_with("sandboxd.toml, line 2: "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused() {
        let error = error("burst = true\n");
        assert!(error.starts_with("burst (sandboxd.toml, line 1): must be a string"), "{error}");
    }
}
