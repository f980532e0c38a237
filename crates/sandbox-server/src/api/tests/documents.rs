use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn health_and_readiness_need_no_key() {
    let server = Server::start().await;
    let health = server.get("/api/v1/health").await.expect(200);
    assert_eq!(health, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}));
    let ready = server.get("/api/v1/ready").await.expect(200);
    assert_eq!(ready["status"], "ready");
    let enforceable = ready["enforceable"].as_array().unwrap();
    assert!(enforceable.contains(&json!("seccomp")), "{ready}");
}

#[tokio::test(flavor = "multi_thread")]
async fn languages_are_listed_with_their_versions() {
    let server = Server::start().await;
    let runtimes = server.get("/api/v1/runtimes").await.expect(200);
    let mut runtimes = runtimes.as_array().unwrap().iter();
    let python = runtimes.find(|runtime| runtime["language"] == "python").unwrap();
    assert_eq!(python["available"], true);
    assert_eq!(python["version"], python["versions"][0]);
    // Paths of the host are not revealed.
    assert!(python.get("program").is_none(), "{python}");
    assert!(!python.to_string().contains("/usr/"), "{python}");
    server.get("/api/v1/runtimes?x=1").await.problem(400, "invalid_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn environments_are_listed() {
    let server = Server::start().await;
    assert!(server.get("/api/v1/environments").await.expect(200).is_array());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_text_for_prometheus() {
    let server = Server::start().await;
    server.post("/api/v1/execute", &python("")).await.expect(200);
    let response = server.get("/metrics").await;
    assert_eq!(response.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let text = text_of(&response);
    assert!(text.contains("sandboxd_accepted_total{language=\"python\"} 1\n"), "{text}");
    // The response comes before the sandbox is destroyed and its slot released.
    let is_idle =
        async { while !text_of(&server.get("/metrics").await).contains("sandboxd_running 0\n") {} };
    tokio::time::timeout(Duration::from_secs(30), is_idle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_and_the_routes_are_the_same() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = matches!(path.as_str(), "/api/v1/health" | "/api/v1/ready");
            assert_eq!(operation["responses"]["401"].is_object(), !is_open, "{method} {path}");
            operations.push(format!("{} {path}", method.to_uppercase()));
        }
        // PATCH is 405 on every routed path, and 404 on others.
        let path = path.replace("{id}", "x").replace("{name}", "x");
        let response = server.send(request(Method::PATCH, &path, &[], Body::empty())).await;
        response.problem(405, "method_not_allowed");
        let mut allowed: Vec<_> = response.header("allow").split(',').collect();
        allowed.retain(|method| *method != "HEAD");
        let mut documented: Vec<_> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        allowed.sort_unstable();
        documented.sort_unstable();
        assert_eq!(allowed, documented, "{path}");
    }
    operations.sort();
    let expected = [
        "DELETE /api/v1/environments/{name}",
        "DELETE /api/v1/execute/{id}",
        "DELETE /api/v1/workspaces/{name}",
        "GET /api/v1/environments",
        "GET /api/v1/environments/{name}",
        "GET /api/v1/execute/{id}",
        "GET /api/v1/execute/{id}/stream",
        "GET /api/v1/executions",
        "GET /api/v1/health",
        "GET /api/v1/ready",
        "GET /api/v1/runtimes",
        "GET /api/v1/workspaces",
        "GET /api/v1/workspaces/{name}",
        "GET /api/v1/workspaces/{name}/export",
        "GET /metrics",
        "POST /api/v1/batch",
        "POST /api/v1/environments",
        "POST /api/v1/execute",
        "POST /api/v1/execute/{id}/stdin",
        "PUT /api/v1/workspaces/{name}",
    ];
    assert_eq!(operations, expected);
    assert_references_resolve(&document, &document);
}

fn assert_references_resolve(document: &Value, part: &Value) {
    match part {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let target = document.pointer(reference.trim_start_matches('#'));
                assert!(target.is_some(), "{reference} does not resolve");
            }
            for field in fields.values() {
                assert_references_resolve(document, field);
            }
        }
        Value::Array(items) => {
            for item in items {
                assert_references_resolve(document, item);
            }
        }
        _ => {}
    }
}

/// The fields of a schema, and whether each is required.
fn fields(document: &Value, schema: &str) -> Vec<(String, bool)> {
    let schema = &document["components"]["schemas"][schema];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = schema["properties"].as_object().unwrap().keys();
    names.map(|name| (name.clone(), required.contains(&json!(name)))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_as_the_document_says() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.expect(200);
    let mut body = python("open('a', 'w').write('x'); print(1)");
    body["collect"] = json!(["*"]);
    let report = server.post("/api/v1/execute", &body).await.expect(200);
    let accepted = server.post("/api/v1/execute?wait=false", &endless()).await;
    let unfinished = server.get(accepted.header("location")).await.expect(200);
    server.delete(accepted.header("location")).await.expect(200);
    let parts = [
        ("Report", &report),
        ("Report", &unfinished),
        ("StageReport", &report["stages"][0]),
        ("OutputFile", &report["output_files"][0]),
        ("Timings", &report["timings_ms"]),
    ];
    for (schema, part) in parts {
        let fields = fields(&document, schema);
        for name in part.as_object().unwrap().keys() {
            assert!(fields.iter().any(|(field, _)| field == name), "{schema} has no {name}");
        }
        for (name, is_required) in fields {
            assert!(!is_required || part.get(&name).is_some(), "{schema} without {name}");
        }
    }
    for report in [report, unfinished] {
        let parsed: sandbox_api::Report = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(json!(parsed.status), report["status"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_page_is_html_or_json() {
    let server = Server::start().await;
    let paths = server.get("/").await.expect(200);
    for name in ["docs", "openapi", "health", "ready"] {
        let path = paths[name].as_str().unwrap();
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let response = server.get_with("/", &[browser, ("host", "box.example:8080")]).await;
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(response.header("vary"), "accept");
    let page = std::str::from_utf8(&response.body).unwrap();
    assert!(page.contains("curl http://box.example:8080/api/v1/execute"), "{page}");
    // The host name is not inserted as HTML.
    let response = server.get_with("/", &[browser, ("host", "<script>")]).await;
    assert!(!std::str::from_utf8(&response.body).unwrap().contains("<script"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_reference_loads_nothing_from_other_hosts() {
    let server = Server::start().await;
    let response = server.get("/docs").await;
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    let page = std::str::from_utf8(&response.body).unwrap();
    assert!(page.contains("/openapi.json"));
    assert!(!page.contains("http://") && !page.contains("https://"), "it names another host");
    let policy = response.header("content-security-policy");
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!page.contains("{nonce}"));
}
