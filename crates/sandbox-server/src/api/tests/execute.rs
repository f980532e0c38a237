use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_response_is_the_report() {
    let server = Server::start().await;
    let report = server.post("/api/v1/execute", &python("print(6 * 7)")).await.expect(200);
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(report["stdout"], "42\n");
    assert_eq!(report["language"], "python");
    let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200), report);
    assert_eq!(server.get(&format!("{path}?wait=5")).await.expect(200), report);
    // Cancelling has no effect once it has finished.
    assert_eq!(server.delete(&path).await.expect(200), report);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_request_gets_an_id() {
    let server = Server::start().await;
    let asynchronous: &[(&str, &str)] = &[("prefer", "respond-async")];
    for (path, headers) in
        [("/api/v1/execute?wait=false", &[][..]), ("/api/v1/execute", asynchronous)]
    {
        let response = server.post_with(path, &python("print(1)"), headers).await;
        let accepted = response.expect(202);
        assert_eq!(accepted["status"], "queued");
        assert_eq!(accepted.as_object().unwrap().len(), 2);
        let location = response.header("location");
        assert_eq!(location, format!("/api/v1/execute/{}", accepted["id"].as_str().unwrap()));
        let applied = if headers.is_empty() { "" } else { "respond-async" };
        assert_eq!(response.header("preference-applied"), applied);
        let report = server.get(&format!("{location}?wait=30")).await.expect(200);
        assert_eq!(report["stdout"], "1\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_wait_limit_the_client_can_cancel() {
    let server = Server::with(|config| config.wait_limit = Duration::from_millis(50)).await;
    let response = server.post("/api/v1/execute", &endless()).await;
    let accepted = response.expect(202);
    assert!(["queued", "running"].contains(&accepted["status"].as_str().unwrap()), "{accepted}");
    let path = response.header("location");
    let report = server.get(&format!("{path}?wait=true")).await.expect(200);
    assert!(report["exit_code"].is_null(), "{report}");
    assert_eq!(report["language"], "python");
    server.delete(path).await.expect(200);
    let report = loop {
        let report = server.get(&format!("{path}?wait=30")).await.expect(200);
        if !report["exit_code"].is_null() {
            break report;
        }
    };
    assert_eq!(report["status"], "cancelled", "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_idempotency_key_runs_once() {
    let server = Server::start().await;
    let named = [("idempotency-key", "once")];
    let post = async |path, code| server.post_with(path, &python(code), &named).await;
    let first = post("/api/v1/execute", "print(1)").await.expect(200);
    assert_eq!(post("/api/v1/execute", "print(1)").await.expect(200), first);
    // The report exists, so an asynchronous request gets it too.
    assert_eq!(post("/api/v1/execute?wait=false", "print(1)").await.expect(200), first);
    post("/api/v1/execute", "print(2)").await.problem(409, "idempotency_conflict");
    for key in ["", "\u{e9}", &"x".repeat(256)] {
        let named = [("idempotency-key", key)];
        let response = server.post_with("/api/v1/execute", &python("1"), &named).await;
        let detail = response.problem(400, "invalid_field");
        assert!(detail.starts_with("Idempotency-Key: "), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_execution_is_not_found() {
    let server = Server::start().await;
    for id in ["exec_0000000000000000000000", "x", "%ff", "..%2f..%2fetc", "%00"] {
        let path = format!("/api/v1/execute/{id}");
        server.get(&path).await.problem(404, "not_found");
        server.get(&format!("{path}?wait=5")).await.problem(404, "not_found");
        server.delete(&path).await.problem(404, "not_found");
        server.get(&format!("{path}/stream")).await.problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_wait_is_refused_before_the_program_runs() {
    let server = Server::start().await;
    for wait in ["soon", "-1", "", "nan"] {
        let path = format!("/api/v1/execute?wait={wait}");
        let detail = server.post(&path, &python("1")).await.problem(400, "invalid_field");
        assert!(detail.starts_with("wait: "), "{detail}");
    }
    let twice = server.post("/api/v1/execute?wait=1&wait=2", &python("1")).await;
    assert_eq!(twice.problem(400, "invalid_field"), "wait: given more than once");
    let unknown = server.post("/api/v1/execute?wiat=1", &python("1")).await;
    assert_eq!(unknown.problem(400, "invalid_field"), "wiat: unknown parameter");
    let history = server.get("/api/v1/executions").await.expect(200);
    assert_eq!(history["executions"], json!([]));
}
