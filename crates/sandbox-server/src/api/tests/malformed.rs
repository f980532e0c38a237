use super::*;

async fn post_bytes(
    server: &Server,
    media_type: Option<&str>,
    body: impl Into<Body>,
) -> TestResponse {
    let headers: Vec<_> = media_type.map(|value| ("content-type", value)).into_iter().collect();
    server.send(request(Method::POST, "/api/v1/execute", &headers, body.into())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_body_is_refused_with_the_position() {
    let server = Server::start().await;
    let deep = format!("{{\"language\": {}", "[".repeat(100_000));
    let cases: [(&[u8], &str); 8] = [
        (b"", "EOF"),
        (b"{\"language\": \"python\",}", "line 1 column 23"),
        (b"{\"language\": \"python\", \"colour\": 1}", "unknown field `colour`"),
        (b"{\"language\": \"python\", \"image\": \"debian\"}", "unknown field `image`"),
        (b"{\"language\": 1}", "expected a string"),
        (b"{\"code\": \"1\"}", "missing field `language`"),
        (b"{\"language\": \"\xff\"}", "not valid UTF-8 at byte 14"),
        (deep.as_bytes(), "line 1"),
    ];
    for (body, expected) in cases {
        let response = post_bytes(&server, Some("application/json"), body.to_vec()).await;
        let detail = response.problem(400, "invalid_body");
        assert!(detail.contains(expected), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_json_is_accepted() {
    let server = Server::start().await;
    for media_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let response = post_bytes(&server, media_type, python("1").to_string()).await;
        let detail = response.problem(415, "invalid_body");
        assert!(detail.contains("Content-Type: application/json"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_whether_announced_or_not() {
    let server = Server::with(|config| config.max_body = sandbox::ByteSize::kib(1)).await;
    let large = python(&"#".repeat(2000)).to_string();
    let announced = [("content-type", "application/json"), ("content-length", "2048")];
    let announced = request(Method::POST, "/api/v1/execute", &announced, large.clone().into());
    server.send(announced).await.problem(413, "code_too_large");
    let chunks = large.into_bytes().chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let chunks = chunks.into_iter().map(Ok::<_, std::io::Error>);
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    let response = post_bytes(&server, Some("application/json"), body).await;
    let detail = response.problem(413, "code_too_large");
    assert!(detail.contains("1024 bytes"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_body_is_not_an_internal_error() {
    let server = Server::start().await;
    let parts = [Ok("{\"lang".to_owned()), Err(std::io::Error::other("the client went away"))];
    let body = Body::from_stream(futures_util::stream::iter(parts));
    post_bytes(&server, Some("application/json"), body).await.problem(400, "invalid_body");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_values_are_refused() {
    let server = Server::start().await;
    let unknown = json!({"language": "pyhton", "code": "1"});
    let detail = server.post("/api/v1/execute", &unknown).await.problem(400, "unknown_language");
    assert!(detail.contains("did you mean 'python'?"), "{detail}");
    let nothing = json!({"language": "python", "timeout_ms": 0, "code": "1"});
    server.post("/api/v1/execute", &nothing).await.problem(400, "invalid_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_methods_are_problems() {
    let server = Server::start().await;
    for path in ["/home", "/api/v2/execute", "/api/v1/execute/a/b/c", "/api/v1/", "/%ff"] {
        server.get(path).await.problem(404, "not_found");
    }
    let paths = [
        ("/api/v1/execute", "POST"),
        ("/api/v1/execute/x", "GET,HEAD,DELETE"),
        ("/api/v1/health", "GET,HEAD"),
        ("/openapi.json", "GET,HEAD"),
    ];
    for (path, allowed) in paths {
        for method in [Method::PUT, Method::PATCH, Method::OPTIONS, Method::TRACE] {
            let response = server.send(request(method, path, &[], Body::empty())).await;
            response.problem(405, "method_not_allowed");
            assert_eq!(response.header("allow"), allowed, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_a_request_id() {
    let server = Server::start().await;
    let named = [("x-request-id", "mine-1.2_3")];
    for path in ["/api/v1/health", "/nothing"] {
        assert_eq!(server.get_with(path, &named).await.header("x-request-id"), "mine-1.2_3");
        let response = server.get_with(path, &[("x-request-id", "not mine")]).await;
        assert!(response.header("x-request-id").starts_with("req_"), "{response:?}");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("cache-control"), "no-store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_problem_without_its_message() {
    use crate::api::request_log::{RequestLog, log_request};
    use axum::middleware::from_fn_with_state;
    use tower_http::catch_panic::CatchPanicLayer;
    async fn panics() -> &'static str {
        panic!("a secret");
    }
    let log = from_fn_with_state(RequestLog::new(&Server::start().await.state), log_request);
    let router = Router::new()
        .route("/", axum::routing::get(panics))
        .layer(CatchPanicLayer::custom(crate::api::error::from_panic))
        .layer(log);
    let response = router.oneshot(Request::new(Body::empty())).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let response = TestResponse { status: parts.status, headers: parts.headers, body };
    let detail = response.problem(500, "internal");
    assert!(!detail.contains("secret"), "{detail}");
}
