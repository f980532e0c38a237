use std::collections::BTreeSet;

/// A feature that the operator permits to some clients and not to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Name protections that an execution may do without (`allow_missing`).
    AllowMissing,
    /// Reach addresses outside the sandbox (the network mode `allowlist`).
    Network,
    /// Have packages fetched and environments built.
    Packages,
}

/// The features that a client may use.
pub type Permissions = BTreeSet<Permission>;

impl Permission {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AllowMissing, Self::Network, Self::Packages];

    /// The name that operators write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllowMissing => "allow_missing",
            Self::Network => "network",
            Self::Packages => "packages",
        }
    }

    /// The permission of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }

    /// Permissions as one text, separated by commas.
    pub fn join(permissions: &Permissions) -> String {
        permissions.iter().map(|permission| permission.name()).collect::<Vec<_>>().join(",")
    }
}
