//! Keys of clients: made, remembered as hashes, and checked.
//!
//! A key is `sk_ID_SECRET`. The id is public: it names the owner of executions and stands in the log.
//! The secret is 256 random bits, so a keyed hash is as good as a slow one and costs a request nothing.
//! Only the hash is stored; whoever reads the database without the server's own secret, which lies in
//! another file, cannot even try guesses.

mod base32;
mod secret;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use anyhow::{Context as _, Result};
use chrono::Utc;
use rustix::rand::{GetRandomFlags, getrandom};
use sandbox_store::{KeyRecord, NewKey, Permissions, Scope, Store};
use subtle::ConstantTimeEq as _;

use crate::callbacks::{CallbackSecret, CallbackSecrets};
pub(crate) use sandbox_scheduler::Identity;
use secret::{Hash, ServerSecret};

/// How every key begins, so that people and scanners for leaked secrets know one when they see it.
const PREFIX: &str = "sk_";
const ID_BYTES: usize = 10;
const SECRET_BYTES: usize = 32;

/// A key as its owner has it. It is shown once and kept nowhere.
pub(crate) struct PlainKey(String);

impl PlainKey {
    /// The text to hand over.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PlainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainKey(hidden)")
    }
}

/// The keys that count, ready to be checked.
pub(crate) struct Keys {
    secret: ServerSecret,
    known: RwLock<HashMap<String, Known>>,
}

/// One key as the check sees it. One that was taken back stays known, and opens nothing.
struct Known {
    hash: Hash,
    scopes: Vec<Scope>,
    permissions: Permissions,
    is_valid: bool,
}

impl Keys {
    /// Reads the keys from the store, and the server's secret from the data directory, where it is made
    /// if it is not there.
    pub(crate) async fn load(store: &dyn Store, data_dir: &Path) -> Result<Self> {
        let secret = ServerSecret::load(data_dir)?;
        let keys = Self { secret, known: RwLock::default() };
        keys.reload(store).await?;
        Ok(keys)
    }

    /// Reads the keys again: some may have been made or taken back by another process.
    pub(crate) async fn reload(&self, store: &dyn Store) -> Result<()> {
        let records = store.keys().await.context("cannot read the keys")?;
        let known = records.into_iter().filter_map(|record| {
            let hash = Hash::try_from(record.hash).ok()?;
            let is_valid = record.revoked_at.is_none();
            let KeyRecord { id, scopes, permissions, .. } = record;
            Some((id, Known { hash, scopes, permissions, is_valid }))
        });
        let known = known.collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Whether no key was ever made. Keys that were taken back count: a server whose last key is taken
    /// back is closed, not open to everybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether there is or was a key of this id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Whether there is a key of this id that counts.
    pub(crate) fn is_valid(&self, id: &str) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(id).is_some_and(|known| known.is_valid)
    }

    /// Whose key this is, if it is one that counts.
    pub(crate) fn check(&self, presented: &str) -> Option<Identity> {
        let id = id_of(presented)?;
        // The same work is done whether the id is known or not. It is public, and yet: no clock should
        // tell which ids there are.
        let hash = self.secret.hash(presented);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(id);
        let expected = found.map_or([0; 32], |known| known.hash);
        let is_same = bool::from(hash.ct_eq(&expected));
        let known = found.filter(|known| is_same && known.is_valid)?;
        Some(Identity {
            key: Some(id.to_owned()),
            scopes: known.scopes.clone(),
            permissions: known.permissions.clone(),
        })
    }

    /// The secret with which the callbacks of this key are signed, or those of clients without a key. It
    /// follows from the server's own, so that it need not be stored.
    pub(crate) fn callback_secret(&self, key: Option<&str>) -> CallbackSecret {
        // No key begins like this: what is hashed as one is never hashed as the other.
        let label = match key {
            Some(id) => format!("callback secret 1 of key {id}"),
            None => "callback secret 1 of clients without a key".to_owned(),
        };
        CallbackSecret::new(self.secret.hash(&label))
    }

    /// Makes a key and remembers its hash.
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
        let new = NewKey {
            id: record.id.clone(),
            name: record.name.clone(),
            hash: record.hash.clone(),
            scopes: record.scopes.clone(),
            permissions: record.permissions.clone(),
            created_at: record.created_at,
        };
        store.add_key(new).await.context("cannot remember the key")?;
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

/// The id in a text that has the form of a key.
fn id_of(presented: &str) -> Option<&str> {
    let (id, secret) = presented.strip_prefix(PREFIX)?.split_once('_')?;
    let has_form = id.len() == base32::length(ID_BYTES)
        && secret.len() == base32::length(SECRET_BYTES)
        && presented.is_ascii();
    has_form.then_some(id)
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    // Without flags the kernel waits until it has enough entropy, and gives up to 256 bytes whole.
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).context("no random numbers")?;
    anyhow::ensure!(count == N, "the kernel gave {count} random bytes of {N}");
    Ok(bytes)
}

#[cfg(test)]
mod tests;
