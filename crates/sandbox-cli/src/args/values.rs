use sandbox::{Isolation, PackageSpec};

/// Packages that were typed as one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packages(pub(crate) Vec<PackageSpec>);

/// Reads packages that are separated by commas.
pub(super) fn parse_packages(text: &str) -> Result<Packages, String> {
    PackageSpec::split(text).map(Packages).map_err(|error| error.to_string())
}

/// Two texts joined by `=` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// What may be asked to build the walls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationChoice {
    /// Whatever is preferred.
    Auto,
    /// This one.
    This(Isolation),
}

/// In which order they are preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IsolationOrder(pub(crate) Vec<Isolation>);

/// Walls that are known by name and may not be there yet.
const PLANNED: [&str; 1] = ["firecracker"];

/// Reads `KEY=VALUE`; the value may be empty and may contain `=`.
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
        _ => text.parse().map(IsolationChoice::This).map_err(|_| {
            let names: Vec<_> = Isolation::ALL.iter().map(|isolation| isolation.name()).collect();
            let names = names.join(", ");
            if PLANNED.contains(&text) {
                return format!("not available in this build: use {names} or auto");
            }
            format!("it is {names} or auto")
        }),
    }
}

/// Reads the order in which `auto` prefers.
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
    fn walls_of_others_are_known_by_name_and_refused() {
        assert_eq!(parse_isolation("native"), Ok(IsolationChoice::This(Isolation::Native)));
        assert_eq!(parse_isolation("runc"), Ok(IsolationChoice::This(Isolation::Runc)));
        assert_eq!(parse_isolation("gvisor"), Ok(IsolationChoice::This(Isolation::Gvisor)));
        let refusal = parse_isolation("firecracker").unwrap_err();
        assert!(refusal.contains("not available in this build"), "{refusal}");
        assert!(!parse_isolation("magic").unwrap_err().contains("build"));
    }
}
