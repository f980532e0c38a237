use sandbox_store::{Permissions, Scope};

/// The client of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of its API key; none for clients on loopback of a server without keys.
    pub key: Option<String>,
    /// The operations that it may call.
    pub scopes: Vec<Scope>,
    /// The features that its requests may use.
    pub permissions: Permissions,
}

impl Identity {
    /// Whether this client may see what this owner has: its own, or everything as an administrator.
    pub(crate) fn may_see(&self, owner: Option<&str>) -> bool {
        self.scopes.contains(&Scope::Admin) || self.key.as_deref() == owner
    }
}
