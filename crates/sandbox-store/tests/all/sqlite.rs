//! The embedded store keeps what every store promises, and a few promises of its own.

use std::fs::{DirBuilder, metadata};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use futures_util::future::join_all;
use sandbox_store::{NewExecution, Retention, SqliteStore, Store, StoreError};
use serde_json::json;
use tempfile::TempDir;

use crate::conformance::{all, conformance, end, ids, insert, moment, new};

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
async fn only_its_user_can_read_what_it_makes() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("made/for us");
    let path = data.join("state.db");
    let store = SqliteStore::open(&path).await.unwrap();
    insert(&store, new("exec_1", 0)).await;
    assert_eq!(mode(&data), 0o700);
    for name in ["state.db", "state.db-wal", "state.db-shm", "state.db-lock"] {
        assert_eq!(mode(&data.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_others_could_read_is_closed_to_them() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("of somebody");
    DirBuilder::new().mode(0o755).create(&data).unwrap();
    let path = data.join("state.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    store.ping().await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&data), 0o755, "a directory that was there is its owner's business");
}

#[tokio::test]
async fn what_was_written_is_there_when_opened_again() {
    let (store, directory) = fresh().await;
    insert(&store, new("exec_1", 0)).await;
    end(&store, "exec_1", 1).await;
    let before = store.execution("exec_1").await.unwrap();
    // Dropped without a word.
    drop(store);
    let store = SqliteStore::open(&directory.path().join("state.db")).await.unwrap();
    assert_eq!(store.execution("exec_1").await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_may_open_a_new_file_at_once_and_share_it() {
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
async fn a_file_that_is_no_database_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "This is not a database, but long enough to have a header. ".repeat(20))
        .unwrap();
    match SqliteStore::open(&path).await {
        Err(StoreError::Open { path: told, .. }) => assert_eq!(told, path.display().to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sweep_gives_room_back_to_the_system() {
    let (store, directory) = fresh().await;
    for number in 0..100 {
        let id = format!("exec_{number}");
        let request = json!({ "code": "x".repeat(100_000) }).to_string();
        insert(&store, NewExecution { request, ..new(&id, 0) }).await;
        end(&store, &id, 1).await;
    }
    let path = directory.path().join("state.db");
    store.sweep(Retention { bytes: 0, ..Retention::UNLIMITED }, moment(2)).await.unwrap();
    drop(store);
    // The file is cut when the log is worked into it, at the latest by whoever opens it next and is
    // the last to close it.
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(ids(&store, all()).await.is_empty());
    store.close().await;
    let left = metadata(&path).unwrap().len();
    assert!(left < 1_000_000, "{left} bytes are left of ten million");
}
