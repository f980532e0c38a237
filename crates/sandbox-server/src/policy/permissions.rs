//! Features that a request may use only with the operator's permission.

use sandbox_api::{Code, ExecuteRequest, NetworkMode, Problem};
use sandbox_store::Permission;

use crate::keys::Identity;

/// Refuses a request that uses a feature its client has no permission for.
pub(crate) fn check(asked: &ExecuteRequest, client: &Identity) -> Result<(), Problem> {
    if !asked.allow_missing.is_empty() {
        require(client, Permission::AllowMissing, "allow_missing")?;
    }
    if asked.network.as_ref().is_some_and(|network| network.mode == NetworkMode::Allowlist) {
        require(client, Permission::Network, "network")?;
    }
    if !asked.packages.is_empty() {
        require(client, Permission::Packages, "packages")?;
    }
    if !asked.volumes.is_empty() {
        require(client, Permission::Volumes, "volumes")?;
    }
    Ok(())
}

/// Refuses a field if its client does not have this permission.
pub(crate) fn require(
    client: &Identity,
    permission: Permission,
    field: &str,
) -> Result<(), Problem> {
    if client.permissions.contains(&permission) {
        return Ok(());
    }
    let name = permission.name();
    let detail = match &client.key {
        Some(id) => format!(
            "{field}: this key does not have the permission '{name}'; the operator can grant it with \
             'sandboxd keys allow {id} {name}', or to all keys with the setting 'key_permissions'"
        ),
        None => format!(
            "{field}: clients without a key do not have the permission '{name}'; the operator can \
             grant it with the setting 'local_permissions'"
        ),
    };
    Err(Problem::new(Code::NotPermitted, detail))
}
