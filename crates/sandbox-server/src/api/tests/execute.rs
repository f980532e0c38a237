use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_report_is_waited_for() {
    let server = Server::start().await;
    let report = server.post("/api/v1/execute", &python("print(6 * 7)")).await.expect(200);
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(report["stdout"], "42\n");
    assert_eq!(report["language"], "python");
    let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200), report);
    assert_eq!(server.get(&format!("{path}?wait=5")).await.expect(200), report);
    // What is over stays as it is.
    assert_eq!(server.delete(&path).await.expect(200), report);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_need_not_wait() {
    let server = Server::start().await;
    let asynchronous: &[(&str, &str)] = &[("prefer", "respond-async")];
    for (path, headers) in
        [("/api/v1/execute?wait=false", &[][..]), ("/api/v1/execute", asynchronous)]
    {
        let answer = server.post_with(path, &python("print(1)"), headers).await;
        let accepted = answer.expect(202);
        assert_eq!(accepted["status"], "queued");
        assert_eq!(accepted.as_object().unwrap().len(), 2);
        let location = answer.header("location");
        assert_eq!(location, format!("/api/v1/execute/{}", accepted["id"].as_str().unwrap()));
        let applied = if headers.is_empty() { "" } else { "respond-async" };
        assert_eq!(answer.header("preference-applied"), applied);
        let report = server.get(&format!("{location}?wait=30")).await.expect(200);
        assert_eq!(report["stdout"], "1\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_stops_waiting_and_the_client_may_cancel() {
    let server = Server::with(|config| config.wait_limit = Duration::from_millis(50)).await;
    let answer = server.post("/api/v1/execute", &endless()).await;
    let accepted = answer.expect(202);
    assert!(["queued", "running"].contains(&accepted["status"].as_str().unwrap()), "{accepted}");
    let path = answer.header("location");
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
async fn what_has_a_name_is_carried_out_once() {
    let server = Server::start().await;
    let named = [("idempotency-key", "once")];
    let post = async |path, code| server.post_with(path, &python(code), &named).await;
    let first = post("/api/v1/execute", "print(1)").await.expect(200);
    assert_eq!(post("/api/v1/execute", "print(1)").await.expect(200), first);
    // Even who does not want to wait gets what is there.
    assert_eq!(post("/api/v1/execute?wait=false", "print(1)").await.expect(200), first);
    post("/api/v1/execute", "print(2)").await.problem(409, "idempotency_conflict");
    for key in ["", "\u{e9}", &"x".repeat(256)] {
        let named = [("idempotency-key", key)];
        let answer = server.post_with("/api/v1/execute", &python("1"), &named).await;
        let detail = answer.problem(400, "invalid_field");
        assert!(detail.starts_with("Idempotency-Key: "), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_is_not_there_is_not_found() {
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
async fn a_bad_wait_is_refused_before_anything_runs() {
    let server = Server::start().await;
    for wait in ["soon", "-1", "", "nan"] {
        let path = format!("/api/v1/execute?wait={wait}");
        let detail = server.post(&path, &python("1")).await.problem(400, "invalid_field");
        assert!(detail.starts_with("wait: "), "{detail}");
    }
    let twice = server.post("/api/v1/execute?wait=1&wait=2", &python("1")).await;
    assert_eq!(twice.problem(400, "invalid_field"), "wait: it is given more than once");
    let unknown = server.post("/api/v1/execute?wiat=1", &python("1")).await;
    assert_eq!(unknown.problem(400, "invalid_field"), "wiat: there is no such parameter here");
    let history = server.get("/api/v1/executions").await.expect(200);
    assert_eq!(history["executions"], json!([]));
}
