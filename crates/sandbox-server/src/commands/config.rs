use std::fmt::Write as _;

use crate::config::Sources;

/// Every setting, its value and its origin, in columns. The values are known to be right.
pub(super) fn check(sources: &Sources) -> String {
    let rows: Vec<_> = sources.settled.in_order().collect();
    let width = |column: fn(&str, &str) -> usize| {
        rows.iter().map(|(name, value, _)| column(name, value)).max().unwrap_or_default()
    };
    let names = width(|name, _| name.len());
    let values = width(|_, value| value.len());
    let mut text = match &sources.file {
        Some(path) => format!("# read: {}\n", path.display()),
        None => "# no configuration file\n".to_owned(),
    };
    for (name, value, origin) in rows {
        // Writing into a text cannot fail.
        let _ = writeln!(text, "{name:<names$}  {value:<values$}  # {origin}");
    }
    text
}
