use std::fmt::Write as _;

use crate::config::LoadedSettings;

/// Formats every setting, its value and its source, in columns. The values are valid.
pub(super) fn check(settings: &LoadedSettings) -> String {
    let rows: Vec<_> = settings.values.in_order().collect();
    let width = |column: fn(&str, &str) -> usize| {
        rows.iter().map(|(name, value, _)| column(name, value)).max().unwrap_or_default()
    };
    let names = width(|name, _| name.len());
    let values = width(|_, value| value.len());
    let mut text = match &settings.file {
        Some(path) => format!("# read: {}\n", path.display()),
        None => "# no configuration file\n".to_owned(),
    };
    for (name, value, origin) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<names$}  {value:<values$}  # {origin}");
    }
    text
}
