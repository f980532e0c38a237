//! Parsers of option values.

use sandbox::{Isolation, PackageSpec};

/// The packages of one `--packages` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageList(pub(crate) Vec<PackageSpec>);

/// Parses packages that are separated by commas.
pub(super) fn parse_packages(text: &str) -> Result<PackageList, String> {
    PackageSpec::split(text).map(PackageList).map_err(|error| error.to_string())
}

/// A `KEY=VALUE` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// The value of `--isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationChoice {
    /// The first backend in order of preference that works.
    Auto,
    /// This backend and no other.
    Named(Isolation),
}

/// The value of `--isolation-order`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IsolationOrder(pub(crate) Vec<Isolation>);

/// Backends that are planned and not implemented yet.
const PLANNED: [&str; 1] = ["firecracker"];

/// Parses `KEY=VALUE`; the value may be empty and may contain `=`.
pub(super) fn parse_pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            Ok(Pair { key: key.to_owned(), value: value.to_owned() })
        }
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

pub(super) fn parse_isolation(text: &str) -> Result<IsolationChoice, String> {
    match text {
        "auto" => Ok(IsolationChoice::Auto),
        _ => text.parse().map(IsolationChoice::Named).map_err(|_| {
            let names: Vec<_> = Isolation::ALL.iter().map(|isolation| isolation.name()).collect();
            let names = names.join(", ");
            if PLANNED.contains(&text) {
                return format!("not available in this build: use {names} or auto");
            }
            format!("unknown backend: use {names} or auto")
        }),
    }
}

/// Parses a list of backends in order of preference.
pub(super) fn parse_order(text: &str) -> Result<IsolationOrder, String> {
    Isolation::parse_list(text).map(IsolationOrder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_a_key_and_an_equals_sign() {
        let pair = parse_pair("A=b=c").unwrap();
        assert_eq!((pair.key.as_str(), pair.value.as_str()), ("A", "b=c"));
        assert_eq!(parse_pair("A=").unwrap().value, "");
        assert!(parse_pair("A").is_err());
        assert!(parse_pair("=b").is_err());
    }

    #[test]
    fn a_planned_backend_is_refused_as_not_available() {
        assert_eq!(parse_isolation("native"), Ok(IsolationChoice::Named(Isolation::Native)));
        assert_eq!(parse_isolation("runc"), Ok(IsolationChoice::Named(Isolation::Runc)));
        assert_eq!(parse_isolation("gvisor"), Ok(IsolationChoice::Named(Isolation::Gvisor)));
        let refusal = parse_isolation("firecracker").unwrap_err();
        assert!(refusal.contains("not available in this build"), "{refusal}");
        assert!(!parse_isolation("magic").unwrap_err().contains("build"));
    }
}
