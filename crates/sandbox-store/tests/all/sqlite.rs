//! The embedded store passes the conformance tests, and tests of its own.

use std::fs::{DirBuilder, metadata};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use futures_util::future::join_all;
use sandbox_store::{NewExecution, Retention, SqliteStore, Store, StoreError};
use serde_json::json;
use tempfile::TempDir;

use crate::conformance::{all, conformance, finish, ids, insert, moment, new};

async fn fresh() -> (SqliteStore, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("state.db")).await.unwrap();
    (store, directory)
}

conformance!(fresh);

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_current_user_can_read_created_files() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("new/nested directory");
    let path = data.join("state.db");
    let store = SqliteStore::open(&path).await.unwrap();
    insert(&store, new("exec_1", 0)).await;
    assert_eq!(mode(&data), 0o700);
    for name in ["state.db", "state.db-wal", "state.db-shm", "state.db-lock"] {
        assert_eq!(mode(&data.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn an_existing_file_is_made_unreadable_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("existing");
    DirBuilder::new().mode(0o755).create(&data).unwrap();
    let path = data.join("state.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    store.ping().await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&data), 0o755, "the mode of an existing directory is not changed");
}

#[tokio::test]
async fn writes_survive_reopening() {
    let (store, directory) = fresh().await;
    insert(&store, new("exec_1", 0)).await;
    finish(&store, "exec_1", 1).await;
    let before = store.execution("exec_1").await.unwrap();
    // Dropped without being closed.
    drop(store);
    let store = SqliteStore::open(&directory.path().join("state.db")).await.unwrap();
    assert_eq!(store.execution("exec_1").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_file_can_be_opened_concurrently_and_shared() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let openings: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move { SqliteStore::open(&path).await.unwrap() })
        })
        .collect();
    let stores: Vec<_> = join_all(openings).await.into_iter().map(Result::unwrap).collect();
    join_all(stores.iter().enumerate().map(|(number, store)| async move {
        for round in 0..5 {
            insert(store, new(&format!("exec_{number}_{round}"), 0)).await;
        }
    }))
    .await;
    for store in &stores {
        assert_eq!(ids(store, all()).await.len(), 40);
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_rejected_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "This is not a database, but long enough to have a header. ".repeat(20))
        .unwrap();
    match SqliteStore::open(&path).await {
        Err(StoreError::Open { path: shown, .. }) => assert_eq!(shown, path.display().to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sweep_returns_disk_space() {
    let (store, directory) = fresh().await;
    for number in 0..100 {
        let id = format!("exec_{number}");
        let request = json!({ "code": "x".repeat(100_000) }).to_string();
        insert(&store, NewExecution { request, ..new(&id, 0) }).await;
        finish(&store, &id, 1).await;
    }
    let path = directory.path().join("state.db");
    store.sweep(Retention { bytes: 0, ..Retention::UNLIMITED }, moment(2)).await.unwrap();
    drop(store);
    // The file shrinks at a checkpoint, at the latest when the last connection is closed.
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(ids(&store, all()).await.is_empty());
    store.close().await;
    let size = metadata(&path).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes are left of ten million");
}
