use sandbox_store::{AuditRecord, KeyRecord, Permission, Permissions, Scope, Store};
use serde_json::json;

use super::moment;

fn key(id: &str, scopes: Vec<Scope>, at: i64) -> KeyRecord {
    KeyRecord {
        id: id.to_owned(),
        name: "the build machine, \"one\"".to_owned(),
        hash: vec![0, 255, 7],
        scopes,
        permissions: Permissions::new(),
        created_at: moment(at),
        revoked_at: None,
    }
}

pub(crate) async fn keys_are_stored_and_revoked(store: &dyn Store) {
    assert!(store.keys().await.unwrap().is_empty());
    let first = key("key_1", vec![Scope::Execute, Scope::Read, Scope::Admin], 0);
    let second = key("key_2", vec![], 1);
    store.add_key(first.clone()).await.unwrap();
    store.add_key(second.clone()).await.unwrap();
    assert!(store.add_key(key("key_1", vec![Scope::Admin], 2)).await.is_err(), "an id is unique");
    let mut expected = [first, second];
    assert_eq!(store.keys().await.unwrap(), expected);

    assert!(store.revoke_key("key_1", moment(3)).await.unwrap());
    assert!(!store.revoke_key("key_1", moment(4)).await.unwrap(), "it was revoked before");
    assert!(!store.revoke_key("key_3", moment(4)).await.unwrap(), "the key does not exist");
    expected[0].revoked_at = Some(moment(3));
    assert_eq!(store.keys().await.unwrap(), expected);
}

pub(crate) async fn permissions_of_a_key_are_stored_and_replaced(store: &dyn Store) {
    let permitted = KeyRecord {
        permissions: Permissions::from([Permission::Network, Permission::AllowMissing]),
        ..key("key_1", vec![Scope::Execute], 0)
    };
    store.add_key(permitted.clone()).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [permitted]);
    let packages = Permissions::from([Permission::Packages]);
    assert!(store.set_key_permissions("key_1", packages.clone()).await.unwrap());
    assert_eq!(store.keys().await.unwrap()[0].permissions, packages);
    assert!(!store.set_key_permissions("key_2", packages.clone()).await.unwrap());
    store.revoke_key("key_1", moment(1)).await.unwrap();
    let all = Permissions::from(Permission::ALL);
    assert!(!store.set_key_permissions("key_1", all).await.unwrap(), "it was revoked");
    assert_eq!(store.keys().await.unwrap()[0].permissions, packages);
}

pub(crate) async fn the_audit_log_is_listed_newest_first(store: &dyn Store) {
    // The third is written after the clock was set back.
    let entries = [5, 6, 1].map(|at| AuditRecord {
        at: moment(at),
        actor: (at != 6).then(|| "key_1".to_owned()),
        action: "execute".to_owned(),
        subject: format!("exec_{at}"),
        detail: json!({ "address": "127.0.0.1" }),
    });
    for entry in &entries {
        store.audit(entry.clone()).await.unwrap();
    }
    let mut newest_first = entries;
    newest_first.reverse();
    assert_eq!(store.audit_log(10).await.unwrap(), newest_first);
    assert_eq!(store.audit_log(2).await.unwrap(), newest_first[..2]);
}
