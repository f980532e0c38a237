use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

/// A stored API key. The key itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The public id.
    pub id: String,
    /// A name given by the operator.
    pub name: String,
    /// A keyed hash of the secret.
    pub hash: Vec<u8>,
    /// The operations that the key allows.
    pub scopes: Vec<Scope>,
    /// The features that requests with the key may use.
    pub permissions: Permissions,
    /// The time of creation.
    pub created_at: DateTime<Utc>,
    /// The time of revocation, if it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// A set of operations that an API key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Run code, and read one's own executions.
    Execute,
    /// Read one's own executions.
    Read,
    /// All operations, on the resources of all clients.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Execute, Self::Read, Self::Admin];

    /// The name of the scope.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    /// Returns the scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A feature that the operator permits to some clients and not to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Name protections that may be missing on the host (`allow_missing`).
    AllowMissing,
    /// Reach addresses outside the sandbox (the network mode `allowlist`).
    Network,
    /// Install packages and build environments.
    Packages,
    /// Mount directories of the host (`volumes`).
    Volumes,
}

/// The features that a client may use.
pub type Permissions = BTreeSet<Permission>;

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 4] = [Self::AllowMissing, Self::Network, Self::Packages, Self::Volumes];

    /// The name of the permission.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllowMissing => "allow_missing",
            Self::Network => "network",
            Self::Packages => "packages",
            Self::Volumes => "volumes",
        }
    }

    /// Returns the permission of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }

    /// Joins the names with commas.
    pub fn join(permissions: &Permissions) -> String {
        permissions.iter().map(|permission| permission.name()).collect::<Vec<_>>().join(",")
    }
}
