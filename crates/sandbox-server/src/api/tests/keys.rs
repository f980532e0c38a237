use super::*;

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_valid_key_are_refused() {
    let server = Server::start().await;
    let key = server.key(&[Scope::Execute]).await;
    let paths = [
        "/api/v1/execute/x",
        "/api/v1/execute/x/stream",
        "/api/v1/executions",
        "/api/v1/runtimes",
        "/api/v1/environments",
        "/api/v1/workspaces",
        "/api/v1/workspaces/x",
        "/api/v1/workspaces/x/export",
        "/metrics",
    ];
    for path in paths {
        let response = server.get(path).await;
        response.problem(401, "unauthorized");
        assert_eq!(response.header("www-authenticate"), "Bearer");
        let wrong = format!("{}x", &key[..key.len() - 1]);
        for header in [bearer(&wrong), bearer(""), "Basic eDp5".to_owned(), key.clone()] {
            let response = server.get_with(path, &[("authorization", &header)]).await;
            response.problem(401, "unauthorized");
        }
    }
    for path in ["/api/v1/execute", "/api/v1/batch"] {
        server.post(path, &json!({})).await.problem(401, "unauthorized");
    }
    server.delete("/api/v1/execute/x").await.problem(401, "unauthorized");
    for header in [("authorization", &*bearer(&key)), ("x-api-key", &*key)] {
        let listed = server.get_with("/api/v1/executions", &[header]).await.expect(200);
        assert_eq!(listed["executions"], json!([]));
    }
    for path in ["/api/v1/health", "/api/v1/ready", "/openapi.json", "/docs"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scope_read_cannot_execute() {
    let server = Server::start().await;
    let reader = server.key(&[Scope::Read]).await;
    let reader = [("x-api-key", &*reader)];
    // Refused before the body is parsed.
    for path in ["/api/v1/execute", "/api/v1/batch"] {
        let detail = server.post_with(path, &json!(1), &reader).await.problem(403, "forbidden");
        assert!(detail.contains("'execute'"), "{detail}");
    }
    let cancel = request(Method::DELETE, "/api/v1/execute/x", &reader, Body::empty());
    server.send(cancel).await.problem(403, "forbidden");
    for path in ["/api/v1/executions", "/api/v1/runtimes", "/metrics"] {
        assert_eq!(server.get_with(path, &reader).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_of_another_key_are_not_found() {
    let server = Server::start().await;
    let keys = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    let [owner, other] = [0, 1].map(|number: usize| [("x-api-key", &*keys[number])]);
    let admin = server.key(&[Scope::Admin]).await;
    let admin = [("x-api-key", &*admin)];
    let named = [owner[0], ("idempotency-key", "mine")];
    let report = server.post_with("/api/v1/execute", &python("print(1)"), &named).await.expect(200);
    let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());

    for path in [path.clone(), format!("{path}?wait=5"), format!("{path}/stream")] {
        let headers = [other[0], ("accept", "text/event-stream")];
        server.get_with(&path, &headers).await.problem(404, "not_found");
    }
    let cancel = request(Method::DELETE, &path, &other, Body::empty());
    server.send(cancel).await.problem(404, "not_found");
    let listed = server.get_with("/api/v1/executions", &other).await.expect(200);
    assert_eq!(listed["executions"], json!([]));
    // Idempotency keys are separate for each API key.
    let named = [other[0], ("idempotency-key", "mine")];
    let own = server.post_with("/api/v1/execute", &python("print(2)"), &named).await.expect(200);
    assert_eq!(own["stdout"], "2\n");

    assert_eq!(server.get_with(&path, &owner).await.expect(200), report);
    let listed = server.get_with("/api/v1/executions", &owner).await.expect(200);
    assert_eq!(listed["executions"].as_array().unwrap().len(), 1);
    assert_eq!(server.get_with(&path, &admin).await.expect(200), report);
    let listed = server.get_with("/api/v1/executions", &admin).await.expect(200);
    assert_eq!(listed["executions"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_dns_rebinding_is_refused() {
    let server = Server::start().await;
    let rebound = [("host", "evil.example:8080")];
    let detail = server.get_with("/api/v1/executions", &rebound).await.problem(403, "forbidden");
    assert!(detail.contains("evil.example:8080"), "{detail}");
    for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"] {
        server.get_with("/api/v1/executions", &[("host", host)]).await.expect(200);
    }
    // With a key, the host name does not matter.
    let key = server.key(&[Scope::Read]).await;
    let headers = [rebound[0], ("x-api-key", &*key)];
    server.get_with("/api/v1/executions", &headers).await.expect(200);
}
