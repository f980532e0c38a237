use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, Utc};
use sandbox_store::{AuditRecord, KeyRecord, Permission, Permissions, Scope, Store};
use serde_json::json;

use super::args::{KeysCommand, PermissionArgs};
use crate::config::Config;
use crate::keys::Keys;
use crate::serve::open_store;

/// Runs the command, and returns its output.
pub(super) async fn run(command: &KeysCommand, config: &Config) -> Result<String> {
    let store = open_store(config).await?;
    match command {
        KeysCommand::Create { name, scopes, permissions } => {
            let mut scopes: Vec<Scope> = scopes.iter().map(|scope| Scope::from(*scope)).collect();
            scopes.sort_unstable();
            scopes.dedup();
            let permissions = permissions.iter().copied().map(Permission::from).collect();
            create(&*store, config, name, scopes, permissions).await
        }
        KeysCommand::Allow(args) => {
            change_permissions(&*store, args, |held, named| held | named).await
        }
        KeysCommand::Deny(args) => {
            change_permissions(&*store, args, |held, named| held - named).await
        }
        KeysCommand::List => {
            let keys = store.keys().await.context("failed to read the keys")?;
            Ok(table(&keys))
        }
        KeysCommand::CallbackSecret { id } => callback_secret(&*store, config, id.as_deref()).await,
        KeysCommand::Revoke { id } => revoke(&*store, id).await,
    }
}

async fn create(
    store: &dyn Store,
    config: &Config,
    name: &str,
    scopes: Vec<Scope>,
    permissions: Permissions,
) -> Result<String> {
    let keys = Keys::load(store, &config.data_dir).await?;
    let (record, plain) = keys.create(store, name, scopes, permissions).await?;
    let detail = json!({
        "name": record.name,
        "scopes": scope_names(&record.scopes),
        "permissions": Permission::join(&record.permissions),
    });
    audit(store, "key.create", &record.id, detail).await?;
    // A hint only: failing to print it is no error.
    let _ = writeln!(
        io::stderr().lock(),
        "To get the secret that signs its callbacks: sandboxd keys callback-secret {}",
        record.id
    );
    // Only the key goes to standard output, so that it can be piped.
    Ok(format!("{}\n", plain.reveal()))
}

async fn change_permissions(
    store: &dyn Store,
    args: &PermissionArgs,
    change: impl Fn(&Permissions, &Permissions) -> Permissions,
) -> Result<String> {
    let id = &args.id;
    let unknown = || format!("no valid key has the id '{id}': see 'sandboxd keys list'");
    let keys = store.keys().await.context("failed to read the keys")?;
    let key = keys.iter().find(|key| key.id == *id).with_context(unknown)?;
    let change_by = args.permissions.iter().copied().map(Permission::from).collect();
    let permissions = change(&key.permissions, &change_by);
    let names = Permission::join(&permissions);
    let changed = store.set_key_permissions(id, permissions).await;
    ensure!(changed.context("failed to change the permissions")?, unknown());
    audit(store, "key.permissions", id, json!({ "permissions": names })).await?;
    Ok(format!("{id} has the permissions: {}\n", or_none(&names)))
}

async fn callback_secret(store: &dyn Store, config: &Config, id: Option<&str>) -> Result<String> {
    let keys = Keys::load(store, &config.data_dir).await?;
    if let Some(id) = id {
        // A revoked key may still have callbacks of earlier executions.
        ensure!(keys.exists(id), "no key has the id '{id}': see 'sandboxd keys list'");
    }
    audit(store, "key.callback_secret", id.unwrap_or("no key"), json!({})).await?;
    Ok(format!("{}\n", keys.callback_secret(id).reveal()))
}

async fn revoke(store: &dyn Store, id: &str) -> Result<String> {
    let revoked = store.revoke_key(id, Utc::now()).await.context("failed to revoke the key")?;
    ensure!(revoked, "no valid key has the id '{id}': see 'sandboxd keys list'");
    audit(store, "key.revoke", id, json!({})).await?;
    Ok(format!("{id} is revoked\n"))
}

async fn audit(
    store: &dyn Store,
    action: &str,
    key: &str,
    detail: serde_json::Value,
) -> Result<()> {
    let record = AuditRecord::new(None, action, key, detail);
    store.audit(record).await.context("failed to write the audit log")
}

fn table(keys: &[KeyRecord]) -> String {
    if keys.is_empty() {
        return "No keys. Create one with 'sandboxd keys create --name NAME'.\n".to_owned();
    }
    let mut text = format!(
        "{:<16}  {:<20}  {:<20}  {:<30}  {:<7}  NAME\n",
        "ID", "CREATED", "SCOPES", "PERMISSIONS", "STATE"
    );
    for key in keys {
        let created = key.created_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let scopes = scope_names(&key.scopes).join(",");
        let permissions = Permission::join(&key.permissions);
        let permissions = or_none(&permissions);
        let state = if key.revoked_at.is_some() { "revoked" } else { "valid" };
        // Escape control characters, which a terminal would interpret.
        let name = key.name.escape_debug();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<16}  {created:<20}  {scopes:<20}  {permissions:<30}  {state:<7}  {name}",
            key.id
        );
    }
    text
}

fn or_none(names: &str) -> &str {
    if names.is_empty() { "none" } else { names }
}

fn scope_names(scopes: &[Scope]) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.name()).collect()
}
