use sandbox_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::server_process::{Server, WAIT_TIMEOUT};

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

#[test]
fn the_response_is_the_report() {
    let data = data();
    let server = Server::start(data.path());
    let body = json!({ "language": "python", "code": "print(6 * 7)" }).to_string();
    let response = server.send("POST", "/api/v1/execute", &[], &body);
    assert_eq!(response.status, 200, "{response:?}");
    let report = response.json();
    assert_eq!((&report["status"], &report["stdout"]), (&json!("completed"), &json!("42\n")));
    let id = report["id"].as_str().expect("an id is text");
    assert_eq!(server.get(&format!("/api/v1/execute/{id}")).json(), report);
}

#[test]
fn an_asynchronous_execution_is_found_by_its_id() {
    let data = data();
    let server = Server::start(data.path());
    let id = server.accept("print('later')");
    let report = server.final_report(&id);
    assert_eq!((&report["status"], &report["stdout"]), (&json!("completed"), &json!("later\n")));
}

#[test]
fn errors_are_problems() {
    let data = data();
    let server = Server::start(data.path());
    let body = json!({ "language": "python", "code": "1", "colour": "red" }).to_string();
    let response = server.send("POST", "/api/v1/execute", &[], &body);
    assert_eq!(response.status, 400, "{response:?}");
    let detail = response.json()["detail"].to_string();
    assert!(detail.contains("colour"), "{detail}");
    assert_eq!(server.get("/api/v1/execute/exec_00000000000000000000000000").status, 404);
}

#[test]
fn events_are_in_order_and_streams_resume() {
    let data = data();
    let server = Server::start(data.path());
    let id = server.accept("for n in range(5): print(n, flush=True)");
    let stream = |from: &str, header: Option<&str>| {
        let path = format!("/api/v1/execute/{id}/stream{from}");
        let mut headers = vec![("Accept", "text/event-stream")];
        headers.extend(header.map(|last| ("Last-Event-ID", last)));
        let response = server.send("GET", &path, &headers, "");
        assert_eq!(response.status, 200, "{response:?}");
        events(&response.body)
    };
    let all = stream("", None);
    let numbers: Vec<_> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (1..=all.len() as u64).collect();
    assert_eq!(numbers, expected);
    let printed: String = all.iter().filter(|event| event["type"] == "stdout").map(text).collect();
    assert_eq!(printed, "0\n1\n2\n3\n4\n");
    assert_eq!(all.last().expect("there are events")["type"], "report");
    assert_eq!(stream("?from=3", None), all[2..], "from the third on");
    assert_eq!(stream("", Some("3")), all[3..], "after the third");
}

#[test]
fn executions_are_counted_in_metrics() {
    let data = data();
    let server = Server::start(data.path());
    server.final_report(&server.accept("1"));
    let counted = "sandboxd_executions_total{language=\"python\",isolation=\"native\",\
                   status=\"completed\"} 1";
    // Metrics are updated after the response.
    let is_counted = || server.get("/metrics").body.lines().any(|line| line == counted);
    assert!(wait_for(WAIT_TIMEOUT, || is_counted().then_some(())).is_some());
}

fn text(event: &Value) -> String {
    event["data"].as_str().expect("output is text here").to_owned()
}

/// The data of each server-sent event.
fn events(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(|data| serde_json::from_str(data).expect("each event is JSON")).collect()
}
