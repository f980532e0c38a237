use std::time::Instant;

use super::super::auth::REFUSAL_DELAY;
use super::*;
use crate::api::Peer;
use crate::metrics::Reader;

async fn limited(burst: u32) -> Server {
    Server::with(|config| {
        // No token is refilled while the test runs.
        config.requests_per_minute = 1;
        config.burst = burst;
        config.limit_local = true;
    })
    .await
}

async fn get_from(server: &Server, address: &str) -> TestResponse {
    let mut request = request(Method::GET, "/api/v1/executions", &[], Body::empty());
    request.extensions_mut().insert(Peer::Remote(address.parse().unwrap()));
    server.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_address_has_its_own_bucket() {
    let server = limited(2).await;
    let first = get_from(&server, "192.0.2.1:1000").await;
    first.expect(200);
    assert_eq!(first.header("ratelimit-limit"), "2");
    assert_eq!(first.header("ratelimit-remaining"), "1");
    assert_eq!(first.header("ratelimit-reset"), "60");
    // The port does not matter.
    let second = get_from(&server, "192.0.2.1:1001").await;
    assert_eq!(second.header("ratelimit-remaining"), "0");
    let asked = Instant::now();
    let third = get_from(&server, "192.0.2.1:1002").await;
    assert!(asked.elapsed() >= REFUSAL_DELAY, "or refusals could use up the server's CPU time");
    third.problem(429, "rate_limited");
    assert_eq!(third.header("ratelimit-remaining"), "0");
    let wait: u64 = third.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    get_from(&server, "192.0.2.2:1000").await.expect(200);
    let metrics = server.state.metrics.encode(Reader::Client);
    assert!(metrics.lines().any(|line| line.contains("rate_limited") && line.ends_with(" 1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_its_own_bucket_and_wrong_keys_use_that_of_the_address() {
    let server = limited(1).await;
    let keys = [server.key(&[Scope::Read]).await, server.key(&[Scope::Read]).await];
    for key in &keys {
        let headers = [("x-api-key", &**key)];
        server.get_with("/api/v1/executions", &headers).await.expect(200);
        let again = server.get_with("/api/v1/executions", &headers).await;
        again.problem(429, "rate_limited");
    }
    let wrong = [("x-api-key", "sk_guess")];
    server.get_with("/api/v1/executions", &wrong).await.problem(401, "unauthorized");
    server.get_with("/api/v1/executions", &wrong).await.problem(429, "rate_limited");
    // Health checks are not limited.
    server.get("/api/v1/health").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_takes_a_token_for_each_request() {
    let server = limited(2).await;
    let body = json!({"requests": [python("print(1)"), python("print(2)"), python("print(3)")]});
    let results = server.post("/api/v1/batch", &body).await.expect(200);
    assert_eq!(results[0]["stdout"], "1\n", "{results}");
    assert_eq!(results[1]["stdout"], "2\n", "{results}");
    assert_eq!(results[2]["code"], "rate_limited", "{results}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_requests_per_minute_means_no_limit() {
    let server = Server::with(|config| config.requests_per_minute = 0).await;
    let response = server.get("/api/v1/executions").await;
    response.expect(200);
    assert_eq!(response.header("ratelimit-limit"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_a_problem_with_retry_after() {
    let server = Server::with(|config| {
        config.concurrency = 1;
        config.queue_bound = 1;
    })
    .await;
    // One runs and one waits; more are refused. The second is refused too if the first has not started by then.
    let mut locations = Vec::new();
    let refused = loop {
        let response = server.post("/api/v1/execute?wait=false", &endless()).await;
        if response.status != StatusCode::ACCEPTED {
            break response;
        }
        locations.push(response.header("location").to_owned());
        assert!(locations.len() <= 2, "{locations:?}");
    };
    refused.problem(503, "queue_full");
    for location in &locations {
        server.delete(location).await.expect(200);
    }
    for location in &locations {
        let report = server.get(&format!("{location}?wait=30")).await.expect(200);
        assert_eq!(report["status"], "cancelled", "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_keys_share_a_quota() {
    let server = Server::with(|config| {
        config.quota_per_key = 1;
        config.limit_local = true;
    })
    .await;
    let running = server.post("/api/v1/execute?wait=false", &endless()).await;
    let refused = server.post("/api/v1/execute", &python("1")).await;
    refused.problem(429, "quota_exceeded");
    server.delete(running.header("location")).await.expect(200);
    server.post("/api/v1/execute", &python("1")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_keys_have_no_limit_by_default() {
    let server = Server::with(|config| {
        config.requests_per_minute = 1;
        config.burst = 1;
        config.quota_per_key = 1;
    })
    .await;
    let running = server.post("/api/v1/execute?wait=false", &endless()).await;
    server.post("/api/v1/execute", &python("1")).await.expect(200);
    server.delete(running.header("location")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_above_the_maximum_are_refused_and_documented() {
    let server = Server::with(|config| config.caps.pids = 70).await;
    let mut body = python("1");
    body["pids"] = json!(71);
    let detail = server.post("/api/v1/execute", &body).await.problem(400, "invalid_field");
    assert!(detail.starts_with("pids: 71 is more than 70"), "{detail}");
    let document = server.get("/openapi.json").await.expect(200);
    let fields = &document["components"]["schemas"]["ExecuteRequest"]["properties"];
    assert_eq!(fields["pids"]["maximum"], 70);
    assert_eq!(fields["timeout_ms"]["maximum"], 300_000);
    // The default of the language applies otherwise.
    server.post("/api/v1/execute", &python("1")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_origins_are_allowed_and_others_are_not() {
    let origin = "https://ide.example";
    let server = Server::with(|config| config.cors_origins = vec![origin.to_owned()]).await;
    let headers = [("origin", origin), ("access-control-request-method", "POST")];
    let preflight = request(Method::OPTIONS, "/api/v1/execute", &headers, Body::empty());
    let response = server.send(preflight).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("access-control-allow-origin"), origin);
    assert!(response.header("access-control-allow-headers").contains("authorization"));
    // Problems have the header too.
    let response = server.get_with("/nothing", &[("origin", origin)]).await;
    response.problem(404, "not_found");
    assert_eq!(response.header("access-control-allow-origin"), origin);
    let other = [("origin", "https://evil.example")];
    let response = server.get_with("/api/v1/runtimes", &other).await;
    assert_eq!(response.header("access-control-allow-origin"), "");
}
