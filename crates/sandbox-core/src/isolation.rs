use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a sandbox is isolated: the backend that builds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Isolation {
    /// Namespaces, cgroups, seccomp and Landlock, set up by this program itself.
    Native,
    /// Containers of a Docker Engine.
    Docker,
    /// Containers of the OCI runtime runc.
    Runc,
    /// Containers of gVisor, which runs a kernel of its own in user space.
    Gvisor,
}

impl Isolation {
    /// All of them, in the default order of preference.
    pub const ALL: &'static [Self] = &[Self::Native, Self::Docker, Self::Runc, Self::Gvisor];

    /// The name in requests, reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Runc => "runc",
            Self::Gvisor => "gvisor",
        }
    }

    /// Parses a comma-separated list. Each name may appear once, and at least one is required.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let isolation = name.parse()?;
            if list.contains(&isolation) {
                return Err(format!("'{name}' is there twice"));
            }
            list.push(isolation);
        }
        if list.is_empty() {
            return Err(format!("at least one must be named: {}", Self::names(Self::ALL)));
        }
        Ok(list)
    }

    /// The reason reported when the first isolation in the order of preference is used.
    pub fn reason_of_first(self) -> String {
        format!("auto: {self} is first in the order of preference")
    }

    /// These names in prose: `a, b or c`.
    pub fn names(isolations: &[Self]) -> String {
        match isolations {
            [] => String::new(),
            [only] => only.name().to_owned(),
            [first @ .., last] => {
                let first: Vec<_> = first.iter().map(|isolation| isolation.name()).collect();
                format!("{} or {last}", first.join(", "))
            }
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isolation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.iter().copied();
        all.find(|isolation| isolation.name() == text).ok_or_else(|| {
            let names = Self::names(Self::ALL);
            format!("'{}' is not an isolation of this build: it is {names}", text.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isolation_is_listed_and_reads_back() {
        for isolation in Isolation::ALL {
            assert_eq!(isolation.to_string().parse(), Ok(*isolation));
            let json = serde_json::to_value(isolation).unwrap();
            assert_eq!(json, isolation.name());
        }
        assert_eq!(Isolation::ALL[0], Isolation::Native);
    }

    #[test]
    fn a_list_has_each_name_once_and_at_least_one() {
        let list = [Isolation::Runc, Isolation::Native];
        assert_eq!(Isolation::parse_list(" runc,native ,"), Ok(list.to_vec()));
        assert!(Isolation::parse_list("runc,runc").unwrap_err().contains("twice"));
        assert!(Isolation::parse_list(" , ").unwrap_err().contains("native"));
        assert!(Isolation::parse_list("runc,magic").unwrap_err().contains("'magic'"));
    }

    #[test]
    fn the_error_for_an_unknown_isolation_lists_the_known_ones() {
        let message = "magic".parse::<Isolation>().unwrap_err();
        let names = Isolation::names(Isolation::ALL);
        assert!(message.contains("'magic'") && message.ends_with(&names), "{message}");
    }
}
