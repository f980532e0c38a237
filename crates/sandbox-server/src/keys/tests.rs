use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use sandbox_store::SqliteStore;
use tempfile::TempDir;

use super::*;

struct Fixture {
    directory: TempDir,
    store: SqliteStore,
    keys: Keys,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let store = SqliteStore::open(&directory.path().join("test.db")).await;
        let store = store.expect("a database can be made");
        let keys = Keys::load(&store, directory.path()).await.expect("there are no keys");
        Self { directory, store, keys }
    }

    async fn create(&self) -> (KeyRecord, PlainKey) {
        let created =
            self.keys.create(&self.store, "tests", vec![Scope::Execute], Permissions::new()).await;
        self.keys.reload(&self.store).await.expect("keys can be read");
        created.expect("a key can be made")
    }
}

#[tokio::test]
async fn only_the_exact_key_is_accepted() {
    let fixture = Fixture::new().await;
    let (record, plain) = fixture.create().await;
    let key = plain.reveal();
    let identity = Identity {
        key: Some(record.id.clone()),
        scopes: vec![Scope::Execute],
        permissions: Permissions::new(),
    };
    assert_eq!(fixture.keys.check(key), Some(identity));

    let last = if key.ends_with('0') { "1" } else { "0" };
    let wrong_end = format!("{}{last}", &key[..key.len() - 1]);
    let other_id = key.replacen(&record.id, &"0".repeat(record.id.len()), 1);
    let upper = key.to_uppercase();
    let longer = format!("{key}0");
    for wrong in ["", "sk_", "sk__", &record.id, &wrong_end, &other_id, &upper, &longer, &key[3..]]
    {
        assert_eq!(fixture.keys.check(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn keys_are_unique_and_long_enough() {
    let fixture = Fixture::new().await;
    let (_, first) = fixture.create().await;
    let (_, second) = fixture.create().await;
    assert_ne!(first.reveal(), second.reveal());
    let secret = first.reveal().rsplit('_').next().expect("there is a secret");
    assert_eq!(secret.len(), 52, "256 bits in letters of five");
}

#[tokio::test]
async fn a_revoked_key_is_refused_and_the_server_still_requires_a_key() {
    let fixture = Fixture::new().await;
    assert!(fixture.keys.is_empty());
    let (record, plain) = fixture.create().await;
    let revoked = fixture.store.revoke_key(&record.id, Utc::now()).await;
    assert!(revoked.expect("the store answers"));
    fixture.keys.reload(&fixture.store).await.expect("keys can be read");
    assert_eq!(fixture.keys.check(plain.reveal()), None);
    assert!(!fixture.keys.is_empty(), "revoking the last key must not open the server");
}

#[tokio::test]
async fn the_secret_of_a_key_is_not_stored() {
    let fixture = Fixture::new().await;
    let (record, plain) = fixture.create().await;
    let secret = plain.reveal().rsplit('_').next().expect("there is a secret");
    assert!(!format!("{record:?}").contains(secret));
    assert!(!format!("{plain:?}").contains(secret));
    // So that no file changes during the scan.
    fixture.store.close().await;
    for entry in std::fs::read_dir(fixture.directory.path()).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let bytes = std::fs::read(&path).expect("it can be read");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "the key's secret stands in {}", path.display());
    }
}

#[tokio::test]
async fn hashes_depend_on_the_server_secret() {
    let fixture = Fixture::new().await;
    let (_, plain) = fixture.create().await;
    let elsewhere = tempfile::tempdir().expect("a temporary directory can be created");
    let others = Keys::load(&fixture.store, elsewhere.path()).await.expect("keys can be read");
    assert_eq!(others.check(plain.reveal()), None);
    let again = Keys::load(&fixture.store, fixture.directory.path()).await;
    assert!(again.expect("keys can be read").check(plain.reveal()).is_some());
}

#[tokio::test]
async fn the_server_secret_must_be_private() {
    let fixture = Fixture::new().await;
    let path = fixture.directory.path().join("server.secret");
    let mode = std::fs::metadata(&path).expect("it was made").mode();
    assert_eq!(mode & 0o7777, 0o600);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, open).expect("its mode can be changed");
    let error = Keys::load(&fixture.store, fixture.directory.path()).await;
    let error = format!("{:#}", error.expect_err("others may read it"));
    assert!(error.contains("chmod 600"), "{error}");
}
