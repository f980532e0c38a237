//! The log and the metrics.

use sandbox_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::server_process::{Server, WAIT_TIMEOUT, create_key, output};

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn lines(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    lines.filter(|line: &Value| line["message"] == message).collect()
}

#[test]
fn the_log_has_a_line_for_every_request_and_every_execution() {
    let data = data();
    let server = Server::start(data.path());
    let body = json!({ "language": "python", "code": "exit(3)" }).to_string();
    let response = server.send("POST", "/api/v1/execute", &[("X-Request-Id", "mine")], &body);
    let report = response.json();
    server.get("/api/v1/nothing");
    let (_, log) = server.stop();

    let executions = lines(&log, "execution ended");
    assert_eq!(executions.len(), 1, "{log}");
    let logged = &executions[0];
    assert_eq!(logged["execution"], report["id"]);
    assert_eq!(logged["request_id"], "mine");
    assert_eq!(
        (&logged["language"], &logged["status"]),
        (&json!("python"), &json!("runtime_error"))
    );
    assert_eq!(logged["run_ms"], report["timings_ms"]["run"]);
    assert_eq!(logged["queue_ms"], report["timings_ms"]["queue"]);

    let requests: Vec<_> = lines(&log, "answered")
        .iter()
        .map(|line| {
            assert!(line["milliseconds"].as_f64().is_some_and(|took| took > 0.0), "{line}");
            let span = &line["span"];
            (span["method"].clone(), span["path"].clone(), line["status"].clone())
        })
        .collect();
    let expected = [
        (json!("POST"), json!("/api/v1/execute"), json!(200)),
        (json!("GET"), json!("/api/v1/nothing"), json!(404)),
    ];
    assert_eq!(requests, expected);
    assert_eq!(lines(&log, "answered")[0]["span"]["request_id"], "mine");
}

#[test]
fn no_key_is_ever_in_the_log() {
    let data = data();
    let key = create_key(data.path(), "somebody");
    // All lines of all crates.
    let server = Server::start_with(data.path(), &[("SANDBOXD_LOG_FILTER", "trace")]);
    let body = json!({ "language": "python", "code": "print(1) # in_the_code" }).to_string();
    let bearer = format!("Bearer {key}");
    for header in [("X-API-Key", &key), ("Authorization", &bearer)] {
        let headers = [(header.0, header.1.as_str())];
        assert_eq!(server.send("POST", "/api/v1/execute", &headers, &body).status, 200);
    }
    let wrong = format!("{}x", &key[..key.len() - 1]);
    assert_eq!(server.send("GET", "/metrics", &[("X-API-Key", &wrong)], "").status, 401);
    let (_, log) = server.stop();
    let (id, secret) = (key.split('_').nth(1).unwrap(), key.rsplit('_').next().unwrap());
    assert!(log.contains(id), "the line of an execution has the id of its key");
    assert!(!log.contains(&secret[..20]), "{log}");
    assert!(!log.contains("in_the_code"), "{log}");
}

fn metrics(server: &Server, key: &str) -> String {
    let response = server.send("GET", "/metrics", &[("X-API-Key", key)], "");
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

/// The value of a series, if it is there.
fn value(text: &str, series: &str) -> Option<f64> {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(|value| value.parse().expect("a value is a number"))
}

#[test]
fn metrics_of_a_key_are_for_the_operator_until_it_is_revoked() {
    let data = data();
    let operator = output(data.path(), &["keys", "create", "--name", "o", "--scope", "admin"]);
    let operator = String::from_utf8(operator.stdout).expect("a key is text").trim().to_owned();
    let key = create_key(data.path(), "client");
    let id = key.split('_').nth(1).expect("a key has an id");
    let server = Server::start(data.path());
    let code =
        "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: 0";
    let body = json!({ "language": "python", "code": code }).to_string();
    assert_eq!(server.send("POST", "/api/v1/execute", &[("X-API-Key", &key)], &body).status, 200);

    // Metrics are updated after the response.
    let executions = format!("sandboxd_key_executions_total{{key=\"{id}\"}} 1");
    let counted = || Some(metrics(&server, &operator)).filter(|text| text.contains(&executions));
    let text = wait_for(WAIT_TIMEOUT, counted).expect("it is counted");
    let of_key = |name: &str| value(&text, &format!("sandboxd_key_{name}_total{{key=\"{id}\"}}"));
    assert_eq!(of_key("executions"), Some(1.0), "{text}");
    assert!(of_key("cpu_seconds").is_some_and(|used| (0.1..10.0).contains(&used)), "{text}");
    assert!(of_key("wall_seconds").is_some_and(|used| (0.1..60.0).contains(&used)), "{text}");
    assert!(!metrics(&server, &key).contains(id), "clients do not see each other");

    assert!(output(data.path(), &["keys", "revoke", id]).status.success());
    let gone = wait_for(WAIT_TIMEOUT, || (!metrics(&server, &operator).contains(id)).then_some(()));
    assert!(gone.is_some(), "{}", metrics(&server, &operator));
}

#[test]
fn requests_pool_store_and_process_have_metrics() {
    let data = data();
    let server = Server::start(data.path());
    let id = server.accept("1");
    server.final_report(&id);
    for path in ["/api/v1/nothing", "/another", "/api/v1/execute/x/y/z"] {
        assert_eq!(server.get(path).status, 404);
    }
    server.send("BREW", "/api/v1/execute", &[], "");
    let text = server.get("/metrics").body;
    let metric =
        |series: &str| value(&text, series).unwrap_or_else(|| panic!("no {series} in\n{text}"));
    let answered = "sandboxd_http_requests_total";
    assert!(!text.contains("nothing") && !text.contains(&id) && !text.contains("BREW"), "{text}");
    let unknown = format!("{answered}{{method=\"GET\",route=\"unknown\",status=\"4xx\"}}");
    assert!((metric(&unknown) - 3.0).abs() < 0.5, "{text}");
    metric(&format!("{answered}{{method=\"other\",route=\"/api/v1/execute\",status=\"4xx\"}}"));
    metric(&format!(
        "{answered}{{method=\"GET\",route=\"/api/v1/execute/{{id}}\",status=\"2xx\"}}"
    ));
    let claims = metric("sandboxd_pool_hits_total") + metric("sandboxd_pool_misses_total");
    assert!((claims - 1.0).abs() < 0.5, "one stage ran:\n{text}");
    assert!((metric("sandboxd_pool_wanted") - 4.0).abs() < 0.5);
    assert!(metric("sandboxd_store_bytes") > 4096.0);
    assert!(metric("process_resident_memory_bytes") > 1e6);
    assert!(metric("process_open_fds") > 5.0);
    assert!(metric("process_start_time_seconds") > 1.7e9);
}
