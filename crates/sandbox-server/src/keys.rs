//! API keys: creation, storage as hashes, and verification.
//!
//! A key is `sk_ID_SECRET`. The id is public: it names the owner of executions and appears in the log. The secret has
//! 256 random bits, so a fast keyed hash is sufficient. Only the hash is stored. Its key is the server secret, which is
//! in another file: the database alone does not allow guessing.

mod base32;
mod secret;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use anyhow::{Context as _, Result};
use chrono::Utc;
use rustix::rand::{GetRandomFlags, getrandom};
use sandbox_store::{KeyRecord, Permissions, Scope, Store};
use subtle::ConstantTimeEq as _;

use crate::callbacks::{CallbackSecret, CallbackSecrets};
pub(crate) use sandbox_scheduler::Identity;
use secret::{Hash, ServerSecret};

/// The prefix of every key, by which people and secret scanners recognize one.
const PREFIX: &str = "sk_";
const ID_BYTES: usize = 10;
const SECRET_BYTES: usize = 32;

/// A key in plain text. It is shown once and not stored.
pub(crate) struct PlainKey(String);

impl PlainKey {
    /// The text of the key.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PlainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainKey(hidden)")
    }
}

/// All keys, in memory for verification.
pub(crate) struct Keys {
    secret: ServerSecret,
    entries: RwLock<HashMap<String, Entry>>,
}

/// A key, by its id. A revoked key stays in the map and is not valid.
struct Entry {
    hash: Hash,
    scopes: Vec<Scope>,
    permissions: Permissions,
    is_valid: bool,
}

impl Keys {
    /// Reads the keys from the store, and the server secret from the data directory. Creates the secret if it does not
    /// exist.
    pub(crate) async fn load(store: &dyn Store, data_dir: &Path) -> Result<Self> {
        let secret = ServerSecret::load(data_dir)?;
        let keys = Self { secret, entries: RwLock::default() };
        keys.reload(store).await?;
        Ok(keys)
    }

    /// Reads the keys again: another process may have created or revoked some.
    pub(crate) async fn reload(&self, store: &dyn Store) -> Result<()> {
        let records = store.keys().await.context("failed to read the keys")?;
        let entries = records.into_iter().filter_map(|record| {
            let hash = Hash::try_from(record.hash).ok()?;
            let is_valid = record.revoked_at.is_none();
            let KeyRecord { id, scopes, permissions, .. } = record;
            Some((id, Entry { hash, scopes, permissions, is_valid }))
        });
        let entries = entries.collect();
        *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries;
        Ok(())
    }

    /// Whether no key was ever created. Revoked keys count: revoking the last key must not open the server to clients
    /// without a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether a key has this id, revoked or not.
    pub(crate) fn exists(&self, id: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Whether a valid key has this id.
    pub(crate) fn is_valid(&self, id: &str) -> bool {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(id).is_some_and(|entry| entry.is_valid)
    }

    /// Verifies a key.
    pub(crate) fn check(&self, presented: &str) -> Option<Identity> {
        let id = id_of(presented)?;
        // Constant time, also for unknown ids, so that timing reveals neither ids nor hashes.
        let hash = self.secret.hash(presented);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(id);
        let expected = entry.map_or([0; 32], |entry| entry.hash);
        let matches = bool::from(hash.ct_eq(&expected));
        let entry = entry.filter(|entry| matches && entry.is_valid)?;
        Some(Identity {
            key: Some(id.to_owned()),
            scopes: entry.scopes.clone(),
            permissions: entry.permissions.clone(),
        })
    }

    /// The secret that signs the callbacks of a key, or of clients without a key. It is derived from the server secret
    /// and not stored.
    pub(crate) fn callback_secret(&self, key: Option<&str>) -> CallbackSecret {
        // Domain separation: no key starts with this label.
        let label = match key {
            Some(id) => format!("callback secret 1 of key {id}"),
            None => "callback secret 1 of clients without a key".to_owned(),
        };
        CallbackSecret::new(self.secret.hash(&label))
    }

    /// Creates a key and stores its hash.
    pub(crate) async fn create(
        &self,
        store: &dyn Store,
        name: &str,
        scopes: Vec<Scope>,
        permissions: Permissions,
    ) -> Result<(KeyRecord, PlainKey)> {
        let id = base32::encode(&random::<ID_BYTES>()?);
        let secret = base32::encode(&random::<SECRET_BYTES>()?);
        let plain = PlainKey(format!("{PREFIX}{id}_{secret}"));
        let record = KeyRecord {
            id,
            name: name.to_owned(),
            hash: self.secret.hash(&plain.0).to_vec(),
            scopes,
            permissions,
            created_at: Utc::now(),
            revoked_at: None,
        };
        store.add_key(record.clone()).await.context("failed to save the key")?;
        Ok((record, plain))
    }
}

impl CallbackSecrets for Keys {
    fn secret(&self, key: Option<&str>) -> CallbackSecret {
        self.callback_secret(key)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// The id in a well-formed key.
fn id_of(presented: &str) -> Option<&str> {
    let (id, secret) = presented.strip_prefix(PREFIX)?.split_once('_')?;
    let is_well_formed = id.len() == base32::length(ID_BYTES)
        && secret.len() == base32::length(SECRET_BYTES)
        && presented.is_ascii();
    is_well_formed.then_some(id)
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // Without flags the kernel blocks until it has enough entropy, and returns up to 256 bytes at once.
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).context("getrandom failed")?;
    anyhow::ensure!(count == N, "getrandom returned {count} of {N} bytes");
    Ok(bytes)
}

#[cfg(test)]
mod tests;
