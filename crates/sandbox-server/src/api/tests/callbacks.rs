use super::*;

fn with_callback(url: &str) -> Value {
    json!({"language": "python", "code": "1", "callback_url": url})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_to_a_private_address_is_refused_before_the_program_runs() {
    let server = Server::start().await;
    for (url, reason) in [
        ("http://127.0.0.1:8080/", "127.0.0.1 is a loopback address"),
        ("http://0x7f.1/", "127.0.0.1 is a loopback address"),
        ("http://169.254.169.254/latest/meta-data", "is a link-local address"),
        ("https://[::ffff:10.0.0.1]/", "is an IPv4 address in disguise"),
        ("https://[fd00:ec2::254]/", "is a private address"),
        ("https://user@example.org/", "user or password"),
        ("ftp://example.org/", "neither http nor https"),
        ("example.org", "is not a URL"),
    ] {
        let response = server.post("/api/v1/execute", &with_callback(url)).await;
        let detail = response.problem(400, "invalid_field");
        assert!(detail.starts_with("callback_url: ") && detail.contains(reason), "{detail}");
    }
    let listed = server.get("/api/v1/executions").await.expect(200);
    assert_eq!(listed["executions"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn permitted_ranges_are_accepted() {
    let server =
        Server::with(|config| config.callback_allow = "127.0.0.0/8".parse().unwrap()).await;
    let permitted = with_callback("http://127.0.0.1:9/");
    server.post("/api/v1/execute", &permitted).await.expect(200);
    let detail = server.post("/api/v1/execute", &with_callback("http://10.0.0.1/")).await;
    detail.problem(400, "invalid_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_contains_a_secret() {
    let server = Server::start().await;
    let keys = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Admin]).await];
    let ids = [&keys[0], &keys[1]].map(|key| key.split('_').nth(1).unwrap());
    let owner = [("x-api-key", &*keys[0])];
    let code = with_callback("https://example.org/");
    let report = server.post_with("/api/v1/execute", &code, &owner).await.expect(200);
    let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());
    let secrets = [None, Some(ids[0]), Some(ids[1])].map(|key| {
        let secret = server.state.keys.callback_secret(key).reveal();
        secret.strip_prefix("whsec_").unwrap().to_owned()
    });
    let stream = format!("{path}/stream");
    let paths = [
        &*path,
        &*stream,
        "/api/v1/executions",
        "/api/v1/environments",
        "/metrics",
        "/openapi.json",
    ];
    for path in paths {
        for key in &keys {
            let headers = [("x-api-key", &**key), ("accept", "text/event-stream")];
            let response = server.get_with(path, &headers).await;
            assert_eq!(response.status, 200, "{path}: {response:?}");
            let text = String::from_utf8_lossy(&response.body);
            for secret in &secrets {
                assert!(!text.contains(secret), "{path} contains a secret");
            }
        }
    }
}
