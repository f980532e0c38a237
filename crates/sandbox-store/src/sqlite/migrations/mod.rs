//! The migrations from an empty file to the current schema. A released migration is never edited: databases that
//! applied it before would differ from those that apply it later. `user_version` is the number of migrations
//! applied.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

const MIGRATIONS: &[&str] = &[
    include_str!("0001_executions_keys_audit.sql"),
    include_str!("0002_callbacks.sql"),
    include_str!("0003_chunks_of_events.sql"),
    include_str!("0004_key_permissions.sql"),
    include_str!("0005_retention_of_owners.sql"),
];

/// Applies the missing migrations, each in a transaction.
pub(super) fn run(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let applied = applied(&transaction)?;
        if applied > MIGRATIONS.len() {
            return Err(StoreError::NewerSchema);
        }
        let Some(migration) = MIGRATIONS.get(applied) else {
            return Ok(());
        };
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", (applied + 1).to_string())?;
        transaction.commit()?;
    }
}

fn applied(connection: &Connection) -> Result<usize, StoreError> {
    let applied: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // The first version applied the first migration without setting `user_version`.
    let is_first_version = applied == 0 && connection.table_exists(None, "executions")?;
    Ok(if is_first_version { 1 } else { applied as usize })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// If this fails, put the change into a new migration.
    #[test]
    fn released_migrations_are_unchanged() {
        let hash = |migration: &&str| {
            let digest = Sha256::digest(migration);
            digest.iter().take(8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
        };
        let hashes: Vec<_> = MIGRATIONS.iter().map(hash).collect();
        assert_eq!(
            hashes,
            [
                "0c964d03667e669d",
                "5e4b832509f9006b",
                "bd69c9eb3f993dcf",
                "c4d065fa899663c9",
                "10d553c42f1eca1e"
            ]
        );
    }

    #[test]
    fn a_database_of_a_later_version_is_rejected() {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", (MIGRATIONS.len() + 1).to_string()).unwrap();
        assert!(matches!(run(&mut connection), Err(StoreError::NewerSchema)));
    }

    #[test]
    fn a_database_of_the_first_version_is_migrated() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        run(&mut connection).unwrap();
        assert_eq!(applied(&connection).unwrap(), MIGRATIONS.len());
    }
}
