//! All steps from an empty file to today's tables. One that was released is never edited: files that
//! took it would differ from those that took it later. The file says how many it took.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

const STEPS: &[&str] = &[
    include_str!("migrations/0001_executions_keys_audit.sql"),
    include_str!("migrations/0002_callbacks.sql"),
    include_str!("migrations/0003_chunks_of_events.sql"),
    include_str!("migrations/0004_key_permissions.sql"),
    include_str!("migrations/0005_retention_of_owners.sql"),
];

/// Brings the tables up to date. Each step is a transaction.
pub(super) fn run(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let taken = taken(&transaction)?;
        if taken > STEPS.len() {
            return Err(StoreError::Newer);
        }
        let Some(step) = STEPS.get(taken) else {
            return Ok(());
        };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", (taken + 1).to_string())?;
        transaction.commit()?;
    }
}

fn taken(connection: &Connection) -> Result<usize, StoreError> {
    let taken: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // Files of the very first version have the first step, and do not say so.
    let is_unsaid = taken == 0 && connection.table_exists(None, "executions")?;
    Ok(if is_unsaid { 1 } else { taken as usize })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// If this fails, put the change into a migration of its own.
    #[test]
    fn released_migrations_are_as_they_were() {
        let hash = |step: &&str| {
            let digest = Sha256::digest(step);
            digest.iter().take(8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
        };
        let hashes: Vec<_> = STEPS.iter().map(hash).collect();
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
    fn a_file_of_a_later_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        run(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", (STEPS.len() + 1).to_string()).unwrap();
        assert!(matches!(run(&mut connection), Err(StoreError::Newer)));
    }

    #[test]
    fn a_file_of_the_first_version_is_taken_up() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(STEPS[0]).unwrap();
        run(&mut connection).unwrap();
        assert_eq!(taken(&connection).unwrap(), STEPS.len());
    }
}
