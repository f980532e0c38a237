use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_one_to_a_hundred_requests() {
    let server = Server::start().await;
    for count in [0, 101] {
        let body = json!({"requests": vec![python("1"); count]});
        let detail = server.post("/api/v1/batch", &body).await.problem(400, "invalid_field");
        assert!(detail.starts_with("requests: must have 1 to 100 items"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_in_the_order_of_the_requests() {
    let server = Server::start().await;
    let body = json!({"requests": [
        python("import time; time.sleep(0.2); print('first')"),
        {"language": "nonsense", "code": ""},
        python("print('third')"),
        {"language": "python", "code": "1", "timeout_ms": 0},
    ]});
    let results = server.post("/api/v1/batch", &body).await.expect(200);
    assert_eq!(results.as_array().unwrap().len(), 4);
    assert_eq!(results[0]["stdout"], "first\n", "{results}");
    assert_eq!(results[1]["code"], "unknown_language", "{results}");
    assert_eq!(results[2]["stdout"], "third\n", "{results}");
    assert_eq!(results[3]["code"], "invalid_field", "{results}");
    assert!(results[3]["detail"].as_str().unwrap().starts_with("requests[3]: "), "{results}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_wait_gets_ids() {
    let server = Server::start().await;
    let body = json!({"requests": [python("print(1)"), {"language": "nonsense", "code": ""}]});
    let results = server.post("/api/v1/batch?wait=false", &body).await.expect(202);
    assert_eq!(results[0]["status"], "queued", "{results}");
    assert_eq!(results[1]["code"], "unknown_language", "{results}");
    let path = format!("/api/v1/execute/{}?wait=30", results[0]["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200)["stdout"], "1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_an_idempotency_key_runs_once() {
    let server = Server::start().await;
    let body = json!({"requests": [python("print(1)"), python("print(1)")]});
    let named = [("idempotency-key", "all")];
    let first = server.post_with("/api/v1/batch", &body, &named).await.expect(200);
    assert_ne!(first[0]["id"], first[1]["id"]);
    assert_eq!(server.post_with("/api/v1/batch", &body, &named).await.expect(200), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_batch_is_refused_whole() {
    let server = Server::start().await;
    for count in [0, 101] {
        let body = json!({"requests": vec![python("1"); count]});
        let detail = server.post("/api/v1/batch", &body).await.problem(400, "invalid_field");
        assert!(detail.starts_with("requests: "), "{detail}");
    }
    let unknown = json!({"requests": [{"language": "python", "code": "1", "colour": 1}]});
    let detail = server.post("/api/v1/batch", &unknown).await.problem(400, "invalid_body");
    assert!(detail.contains("unknown field `colour`"), "{detail}");
    let history = server.get("/api/v1/executions").await.expect(200);
    assert_eq!(history["executions"], json!([]));
}
