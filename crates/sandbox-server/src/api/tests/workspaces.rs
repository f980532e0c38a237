use std::time::{Duration, Instant};

use super::*;

fn bash(workspace: &str, code: &str) -> Value {
    json!({"language": "bash", "code": code, "workspace": workspace})
}

/// A tar archive with one file.
fn archive(path: &str, content: &str) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    let size = format!("{:011o}", content.len());
    for (place, text) in [
        (0, path),
        (100, "0000644"),
        (124, &size),
        (136, "00000000000"),
        (148, "        "),
        (156, "0"),
        (257, "ustar"),
    ] {
        bytes[place..place + text.len()].copy_from_slice(text.as_bytes());
    }
    let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
    bytes[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    bytes[154] = 0;
    bytes.extend_from_slice(content.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(512) + 1024, 0);
    bytes
}

async fn put(server: &Server, path: &str, body: Vec<u8>, key: &str) -> TestResponse {
    let headers = [("content-type", "application/x-tar"), ("x-api-key", key)];
    server.send(request(Method::PUT, path, &headers, Body::from(body))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_shared_exported_imported_and_removed() {
    let server = Server::start().await;
    let report =
        server.post("/api/v1/execute", &bash("w", "echo built > result")).await.expect(200);
    assert_eq!(report["workspace"]["saved"], true, "{report}");
    let report = server.post("/api/v1/execute", &bash("w:ro", "cat result")).await.expect(200);
    assert_eq!(report["stdout"], "built\n", "{report}");
    let listed = server.get("/api/v1/workspaces").await.expect(200);
    assert_eq!((&listed[0]["name"], &listed[0]["bytes"]), (&json!("w"), &json!(6)));
    let shown = server.get("/api/v1/workspaces/w").await.expect(200);
    assert_eq!((&shown["files"], &shown["in_use"]), (&json!(1), &json!(false)));
    let export = server.get("/api/v1/workspaces/w/export").await;
    assert_eq!((export.status.as_u16(), export.header("content-type")), (200, "application/x-tar"));
    assert!(export.body.starts_with(b"result\0"), "{export:?}");
    put(&server, "/api/v1/workspaces/copy", export.body.to_vec(), "").await.expect(200);
    let report = server.post("/api/v1/execute", &bash("copy", "cat result")).await.expect(200);
    assert_eq!(report["stdout"], "built\n", "{report}");
    assert_eq!(server.delete("/api/v1/workspaces/w").await.status, 204);
    for path in ["/api/v1/workspaces/w", "/api/v1/workspaces/w/export", "/api/v1/workspaces/.."] {
        server.get(path).await.problem(404, "not_found");
    }
    server.delete("/api/v1/workspaces/w").await.problem(404, "not_found");
    server.post("/api/v1/execute", &bash("w:ro", "")).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_of_another_key_are_not_found() {
    let server = Server::start().await;
    let (ada, bob) = (server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await);
    // An admin's key sees only its own workspaces too.
    let admin = server.key(&[Scope::Admin]).await;
    put(&server, "/api/v1/workspaces/w", archive("secret", "ada's"), &ada).await.expect(200);
    for key in [&bob, &admin] {
        let header = [("x-api-key", key.as_str())];
        assert_eq!(server.get_with("/api/v1/workspaces", &header).await.expect(200), json!([]));
        for path in ["/api/v1/workspaces/w", "/api/v1/workspaces/w/export"] {
            server.get_with(path, &header).await.problem(404, "not_found");
        }
        let delete = request(Method::DELETE, "/api/v1/workspaces/w", &header, Body::empty());
        server.send(delete).await.problem(404, "not_found");
        server
            .post_with("/api/v1/execute", &bash("w:ro", "cat secret"), &header)
            .await
            .problem(404, "not_found");
        let own = bash("w", "ls; echo x > x");
        let report = server.post_with("/api/v1/execute", &own, &header).await.expect(200);
        assert_eq!(report["stdout"], "main.sh\n");
    }
    let header = [("x-api-key", ada.as_str())];
    let report = server.post_with("/api/v1/execute", &bash("w", "ls; cat secret"), &header).await;
    assert_eq!(report.expect(200)["stdout"], "main.sh\nsecret\nada's");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_unfinished_execution_can_write() {
    let server = Server::start().await;
    server.post("/api/v1/execute", &bash("w", "echo x > x")).await.expect(200);
    let mut endless = endless();
    endless["workspace"] = json!("w");
    let id = server.post("/api/v1/execute?wait=false", &endless).await.expect(202);
    let id = id["id"].as_str().unwrap();
    let detail =
        server.post("/api/v1/execute", &bash("w", "true")).await.problem(409, "workspace_in_use");
    assert!(detail.contains("'w:ro'"), "{detail}");
    let report = server.post("/api/v1/execute", &bash("w:ro", "cat x")).await.expect(200);
    assert_eq!(report["stdout"], "x\n", "{report}");
    let cancelled = server.delete(&format!("/api/v1/execute/{id}")).await.expect(200);
    assert_eq!(cancelled["status"], "cancelled");
    let report = server.post("/api/v1/execute", &bash("w", "cat x")).await.expect(200);
    assert_eq!(report["stdout"], "x\n", "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_archives_are_problems() {
    let server = Server::with(|config| {
        config.workspace_size = sandbox::ByteSize::mib(1);
        config.workspaces_per_key = 1;
    })
    .await;
    let path = "/api/v1/workspaces/w";
    put(&server, path, archive("../up", ""), "").await.problem(400, "invalid_body");
    put(&server, path, vec![b'x'; 4096], "").await.problem(400, "invalid_body");
    let large = "x".repeat(1_100_000);
    put(&server, path, archive("x", &large), "").await.problem(413, "code_too_large");
    put(&server, path, vec![0; 3 << 20], "").await.problem(413, "code_too_large");
    put(&server, "/api/v1/workspaces/.x", archive("x", ""), "").await.problem(400, "invalid_field");
    let json = [("content-type", "application/json")];
    let untyped = request(Method::PUT, path, &json, Body::from(archive("x", "")));
    server.send(untyped).await.problem(415, "invalid_body");
    assert_eq!(server.get("/api/v1/workspaces").await.expect(200), json!([]));
    put(&server, path, archive("x", ""), "").await.expect(200);
    put(&server, "/api/v1/workspaces/v", archive("x", ""), "")
        .await
        .problem(409, "workspace_limit");
    server.post("/api/v1/execute", &bash("v", "")).await.problem(409, "workspace_limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_only_read_changes_nothing() {
    let server = Server::start().await;
    let reader = server.key(&[Scope::Read]).await;
    let path = "/api/v1/workspaces/w";
    put(&server, path, archive("x", ""), &reader).await.problem(403, "forbidden");
    let header = [("x-api-key", reader.as_str())];
    let delete = request(Method::DELETE, path, &header, Body::empty());
    server.send(delete).await.problem(403, "forbidden");
}

/// Each export takes a thread for as long as its client reads, and the store needs threads of the same kind.
#[tokio::test(flavor = "multi_thread")]
async fn exports_that_nobody_reads_take_no_more_than_a_share_of_the_threads() {
    let server = Server::start().await;
    let (ada, bob) = (server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await);
    let large = archive("x", &"x".repeat(4 << 20));
    for key in [&ada, &bob] {
        put(&server, "/api/v1/workspaces/w", large.clone(), key).await.expect(200);
    }
    let export = async |key: &str| {
        let headers = [("x-api-key", key)];
        let request = request(Method::GET, "/api/v1/workspaces/w/export", &headers, Body::empty());
        server.router.clone().oneshot(request).await.unwrap()
    };
    let unread = [export(&ada).await, export(&ada).await];
    assert!(unread.iter().all(|response| response.status() == StatusCode::OK));
    assert_eq!(export(&ada).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(export(&bob).await.status(), StatusCode::OK, "another key has its own share");
    drop(unread);
    let mut response = export(&ada).await;
    // Whoever stops reading is noticed at the next piece.
    for _ in 0..1000 {
        if response.status() == StatusCode::OK {
            break;
        }
        tokio::task::yield_now().await;
        response = export(&ada).await;
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() > 4 << 20, "{} bytes", body.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_nobody_reads_ends_as_broken_off() {
    let server = Server::with(|config| config.write_timeout = Duration::from_millis(20)).await;
    let ada = server.key(&[Scope::Execute]).await;
    let large = archive("x", &"x".repeat(4 << 20));
    put(&server, "/api/v1/workspaces/w", large, &ada).await.expect(200);
    let header = [("x-api-key", ada.as_str())];
    let export = async || {
        let request = request(Method::GET, "/api/v1/workspaces/w/export", &header, Body::empty());
        server.router.clone().oneshot(request).await.unwrap()
    };
    let unread = [export().await, export().await];
    let deadline = Instant::now() + Duration::from_secs(30);
    while export().await.status() != StatusCode::OK {
        assert!(Instant::now() < deadline, "the unread exports keep their share");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // What was buffered can still be read; then the client learns that it is not all.
    let mut broken_off = 0;
    for response in unread {
        broken_off += usize::from(response.into_body().collect().await.is_err());
    }
    assert!(broken_off > 0);
}
