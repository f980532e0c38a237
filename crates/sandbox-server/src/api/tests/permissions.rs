//! Features that a client may use only with the operator's permission.

use sandbox_store::{Permission, Permissions};

use super::*;

fn with_field(field: &str, value: Value) -> Value {
    let mut body = python("print(1)");
    body[field] = value;
    body
}

/// A request for each permission that needs no other setting, and the field that needs it.
fn requests() -> [(Permission, &'static str, Value); 3] {
    let network = json!({"mode": "allowlist", "allow": ["8.0.0.0/8:25"]});
    [
        (Permission::AllowMissing, "allow_missing", json!(["landlock"])),
        (Permission::Network, "network", network),
        (Permission::Packages, "packages", json!(["six==1.16.0"])),
    ]
    .map(|(permission, field, value)| (permission, field, with_field(field, value)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_no_permissions_by_default() {
    let server = Server::start().await;
    for scope in [Scope::Execute, Scope::Admin] {
        let key = server.key(&[scope]).await;
        let key = [("x-api-key", &*key)];
        for (permission, field, body) in requests() {
            let response = server.post_with("/api/v1/execute?wait=false", &body, &key).await;
            let detail = response.problem(403, "not_permitted");
            assert!(detail.starts_with(&format!("{field}: ")), "{detail}");
            assert!(detail.contains(&format!("'{}'", permission.name())), "{detail}");
            assert!(detail.contains("'key_permissions'"), "{detail}");
            let batch = json!({"requests": [body]});
            let results = server.post_with("/api/v1/batch", &batch, &key).await.expect(200);
            assert_eq!(results[0]["code"], "not_permitted", "{results}");
        }
        let environment = json!({"name": "e", "language": "python", "packages": ["six"]});
        let response = server.post_with("/api/v1/environments", &environment, &key).await;
        response.problem(403, "not_permitted");
        // Modes without external access need no permission.
        for mode in ["none", "localhost"] {
            let body = with_field("network", json!({"mode": mode}));
            server.post_with("/api/v1/execute", &body, &key).await.expect(200);
        }
        let listed = server.get_with("/api/v1/executions?limit=500", &key).await.expect(200);
        let listed = listed["executions"].as_array().unwrap();
        assert!(listed.iter().all(|one| one["status"] == "completed"), "{listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_applies_to_one_key() {
    let server = Server::start().await;
    let other = server.key(&[Scope::Execute]).await;
    let other = [("x-api-key", &*other)];
    for (permission, _, body) in requests() {
        let granted = server.permitted_key(&[permission]).await;
        let granted = [("x-api-key", &*granted)];
        server.post_with("/api/v1/execute?wait=false", &body, &granted).await.expect(202);
        let refused = server.post_with("/api/v1/execute?wait=false", &body, &other).await;
        refused.problem(403, "not_permitted");
        for (_, _, body) in requests().iter().filter(|(one, ..)| *one != permission) {
            let refused = server.post_with("/api/v1/execute?wait=false", body, &granted).await;
            refused.problem(403, "not_permitted");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_grant_a_permission_to_all_keys() {
    let grant = |config: &mut Config| config.key_permissions = Permission::ALL.into();
    let server = Server::with(grant).await;
    let key = server.key(&[Scope::Execute]).await;
    for (_, _, body) in requests() {
        let headers = [("x-api-key", &*key)];
        server.post_with("/api/v1/execute?wait=false", &body, &headers).await.expect(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_only_allow_missing_needs_a_setting() {
    let server = Server::start().await;
    for (permission, field, body) in requests() {
        let response = server.post("/api/v1/execute?wait=false", &body).await;
        if permission == Permission::AllowMissing {
            let detail = response.problem(403, "not_permitted");
            assert!(detail.starts_with(&format!("{field}: ")), "{detail}");
            assert!(detail.contains("'local_permissions'"), "{detail}");
        } else {
            response.expect(202);
        }
    }
    let allow = |config: &mut Config| config.local_permissions = Permission::ALL.into();
    let server = Server::with(allow).await;
    let report = server.post("/api/v1/execute", &requests()[0].2).await.expect(200);
    assert_eq!(report["stdout"], "1\n");
    let none = |config: &mut Config| config.local_permissions = Permissions::new();
    let server = Server::with(none).await;
    for (_, _, body) in requests() {
        server.post("/api/v1/execute", &body).await.problem(403, "not_permitted");
    }
}
