//! A hostile key cannot change what another key of the same server has.

use chrono::Utc;

use super::*;

const ROUNDS: usize = 12;

fn with_field(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// Sends to every endpoint requests that are expensive, not permitted, or about an execution of the other key.
async fn attack(server: &Server, key: &str, target: &str) {
    let key = ("x-api-key", key);
    let large = python("print('x' * 100_000)");
    let waits = python("import time; time.sleep(0.3)");
    let stdin = with_field(waits.clone(), "stdin", "x".repeat(100_000).into());
    let network = json!({"mode": "allowlist", "allow": ["8.0.0.0/8:25"]});
    let one = "/api/v1/execute";
    let bodies = [
        (one, large.clone(), 200),
        (one, with_field(large.clone(), "allow_missing", json!(["landlock"])), 403),
        (one, with_field(large.clone(), "network", network), 403),
        (one, with_field(large.clone(), "packages", json!(["six"])), 403),
        (one, with_field(large.clone(), "workspace", json!("w")), 200),
        ("/api/v1/batch", json!({"requests": vec![stdin; 8]}), 200),
        (
            "/api/v1/environments",
            json!({"name": "e", "language": "python", "packages": ["six"]}),
            403,
        ),
    ];
    for (path, body, status) in bodies {
        server.post_with(path, &body, &[key]).await.expect(status);
    }
    // The idempotency key of the other client.
    let named = [key, ("idempotency-key", "mine")];
    server.post_with(one, &large, &named).await.expect(200);
    for path in [format!("{one}/{target}"), format!("{one}/{target}/stream")] {
        let headers = [key, ("accept", "text/event-stream")];
        server.get_with(&path, &headers).await.problem(404, "not_found");
    }
    let cancel = request(Method::DELETE, &format!("{one}/{target}"), &[key], Body::empty());
    server.send(cancel).await.problem(404, "not_found");
    for path in [
        "/api/v1/executions?limit=500",
        "/api/v1/runtimes",
        "/api/v1/environments",
        "/api/v1/workspaces",
        "/metrics",
    ] {
        assert_eq!(server.get_with(path, &[key]).await.status, 200, "{path}");
    }
    let tar = [key, ("content-type", "application/x-tar")];
    let import = request(Method::PUT, "/api/v1/workspaces/w", &tar, Body::from("x".repeat(5_000)));
    assert!(server.send(import).await.status.is_client_error());
    let remove = request(Method::DELETE, "/api/v1/workspaces/mine", &[key], Body::empty());
    server.send(remove).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_key_changes_nothing_of_another_key() {
    let server = Server::with(|config| {
        config.requests_per_minute = 0;
        config.retention.bytes = 500_000;
        config.quota_per_key = 5;
        config.queue_memory_per_key = sandbox::ByteSize::kib(300);
    })
    .await;
    let [key, hostile] = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    let mine = [("x-api-key", &*key), ("idempotency-key", "mine")];
    let named = python("print('mine')");
    let report = server.post_with("/api/v1/execute", &named, &mine).await.expect(200);
    let id = report["id"].as_str().unwrap();
    let kept = with_field(python("open('f', 'w').write('kept')"), "workspace", json!("mine"));
    server.post_with("/api/v1/execute", &kept, &mine[..1]).await.expect(200);
    let history = server.get_with("/api/v1/executions", &mine[..1]).await.expect(200);

    for _ in 0..ROUNDS {
        attack(&server, &hostile, id).await;
        server.state.store.sweep(server.state.config.retention, Utc::now()).await.unwrap();
    }
    let theirs = [("x-api-key", &*hostile)];
    let left = server.get_with("/api/v1/executions?limit=500", &theirs).await.expect(200);
    assert!(left["executions"].as_array().unwrap().len() < 3 * ROUNDS, "retention removed nothing");

    assert_eq!(server.get_with("/api/v1/executions", &mine[..1]).await.expect(200), history);
    let path = format!("/api/v1/execute/{id}");
    assert_eq!(server.get_with(&path, &mine[..1]).await.expect(200), report);
    let again = server.post_with("/api/v1/execute", &named, &mine).await.expect(200);
    assert_eq!(again["id"], report["id"], "the idempotency key was forgotten");
    let read = with_field(python("print(open('f').read())"), "workspace", json!("mine:ro"));
    let read = server.post_with("/api/v1/execute", &read, &mine[..1]).await.expect(200);
    assert_eq!(read["stdout"], "kept\n", "{read}");
}
