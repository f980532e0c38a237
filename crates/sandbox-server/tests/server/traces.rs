use std::net::TcpListener;
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::collector::{Collector, attribute};
use crate::server_process::{Server, create_key};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "'{name}' in {spans:#?}");
    found[0]
}

fn execute(server: &Server, headers: &[(&str, &str)], request: &serde_json::Value) -> String {
    let response = server.send("POST", "/api/v1/execute", headers, &request.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    let report = response.json();
    assert_eq!(report["status"], "completed", "{report}");
    report["id"].as_str().expect("an id is text").to_owned()
}

#[test]
fn an_execution_is_a_child_of_the_clients_span() {
    let (data, collector) = (data(), Collector::start());
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &collector.url())]);
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    let request = json!({ "language": "python", "code": "print(1)" });
    let headers = [("traceparent", traceparent.as_str()), ("X-Request-Id", "mine")];
    let id = execute(&server, &headers, &request);

    let spans = collector.wait_for("execution", 1);
    let request_span = one(&spans, "POST /api/v1/execute");
    assert_eq!(hex(&request_span.trace_id), TRACE);
    assert_eq!(hex(&request_span.parent_span_id), CALLER);
    let attributes = |span, keys: &[&str]| -> Vec<_> {
        keys.iter().map(|key| attribute(span, key).unwrap_or_default()).collect()
    };
    let keys = ["http.request.method", "http.route", "http.response.status_code"];
    assert_eq!(attributes(request_span, &keys), ["POST", "/api/v1/execute", "200"]);
    assert_eq!(attribute(request_span, "sandboxd.request.id").as_deref(), Some("mine"));

    let execution = one(&spans, "execution");
    assert_eq!(execution.parent_span_id, request_span.span_id);
    let keys = ["id", "language", "isolation", "status"].map(|key| match key {
        "id" => "sandboxd.execution.id".to_owned(),
        key => format!("sandboxd.{key}"),
    });
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    assert_eq!(attributes(execution, &keys), [&id, "python", "native", "completed"]);
    assert_eq!(attribute(execution, "sandboxd.request.id").as_deref(), Some("mine"));
    assert!(request_span.start_time_unix_nano <= execution.start_time_unix_nano, "{spans:#?}");
    assert_children(&spans, execution, &["queue", "prepare", "run", "collect"]);
}

/// Asserts that a span has exactly these children, consecutive and within it.
fn assert_children(spans: &[Span], parent: &Span, names: &[&str]) {
    let is_child = |span: &&Span| span.parent_span_id == parent.span_id;
    let mut children: Vec<_> = spans.iter().filter(is_child).collect();
    children.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
    let found: Vec<_> = children.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(found, names);
    let mut before = parent.start_time_unix_nano;
    for child in children {
        assert_eq!(child.trace_id, parent.trace_id);
        assert!(before <= child.start_time_unix_nano, "{child:#?} overlaps");
        assert!(child.start_time_unix_nano <= child.end_time_unix_nano, "{child:#?}");
        before = child.end_time_unix_nano;
    }
    assert!(before <= parent.end_time_unix_nano, "{parent:#?} ends before its parts");
}

#[test]
fn each_stage_has_its_own_preparation_and_collection() {
    let (data, collector) = (data(), Collector::start());
    let cache = data.path().join("cache");
    let cache = cache.to_str().expect("temporary paths are text");
    let variables =
        [("SANDBOXD_OTLP_ENDPOINT", collector.url()), ("XDG_CACHE_HOME", cache.to_owned())];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &value[..])).collect();
    let server = Server::start_with(data.path(), &variables);
    let request = json!({ "language": "c", "code": "int main(void) { return 0; }" });
    execute(&server, &[], &request);
    let spans = collector.wait_for("execution", 1);
    let execution = one(&spans, "execution");
    let parts = ["queue", "prepare", "compile", "collect", "prepare", "run", "collect"];
    assert_children(&spans, execution, &parts);
    let compile = one(&spans, "compile");
    assert_eq!(attribute(compile, "sandboxd.cached").as_deref(), Some("false"));
    let took = compile.end_time_unix_nano - compile.start_time_unix_nano;
    assert!(took > 1_000_000, "no compiler is done in {took} ns");
}

#[test]
fn a_client_can_turn_sampling_off() {
    let (data, collector) = (data(), Collector::start());
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &collector.url())]);
    let request = json!({ "language": "python", "code": "" });
    let untraced = format!("00-{TRACE}-{CALLER}-00");
    execute(&server, &[("traceparent", &untraced)], &request);
    let nonsense = format!("00-{TRACE}-zz-01");
    execute(&server, &[("traceparent", &nonsense)], &request);
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    // The shutdown has sent all spans.
    let spans = collector.spans();
    let execution = one(&spans, "execution");
    let request_span = one(&spans, "POST /api/v1/execute");
    assert_eq!(execution.trace_id, request_span.trace_id);
    assert_ne!(hex(&request_span.trace_id), TRACE);
    assert!(request_span.parent_span_id.is_empty(), "an invalid trace context has no parent");
}

#[test]
fn a_sample_of_zero_sends_only_traces_of_clients() {
    let (data, collector) = (data(), Collector::start());
    let url = collector.url();
    let variables = [("SANDBOXD_OTLP_ENDPOINT", &url[..]), ("SANDBOXD_OTLP_SAMPLE", "0")];
    let server = Server::start_with(data.path(), &variables);
    execute(&server, &[], &json!({ "language": "python", "code": "" }));
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    execute(
        &server,
        &[("traceparent", &traceparent)],
        &json!({ "language": "python", "code": "" }),
    );
    server.stop();
    let spans = collector.spans();
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
    one(&spans, "execution");
}

#[test]
fn traces_contain_no_private_data() {
    let (data, collector) = (data(), Collector::start());
    let key = create_key(data.path(), "somebody");
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &collector.url())]);
    let request = json!({
        "language": "python",
        "code": "import os, sys; print(os.environ['NAME'] + sys.stdin.read()) # in_the_code",
        "env": { "NAME": "in_the_environment" },
        "stdin": "in_the_input",
        "args": ["in_the_arguments"],
        "labels": { "in_the_label": "in_the_label" },
    });
    execute(&server, &[("X-API-Key", &key)], &request);
    server.send("GET", "/api/v1/in_the_path?a=in_the_query", &[("X-API-Key", &key)], "");
    server.stop();
    let spans = collector.spans();
    let id = key.split('_').nth(1).expect("a key has an id");
    assert_eq!(attribute(one(&spans, "execution"), "sandboxd.key.id").as_deref(), Some(id));
    one(&spans, "GET unknown");
    let sent = String::from_utf8_lossy(&collector.bytes()).into_owned();
    let secret = key.rsplit('_').next().expect("a key has a secret");
    for private in ["in_the_", secret] {
        assert!(!sent.contains(private), "{private} is in {sent:?}");
    }
}

#[test]
fn the_server_works_without_the_collector() {
    let data = data();
    // Nothing listens on this port.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let url = format!("http://{}", free.expect("there is a free port"));
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &url)]);
    execute(&server, &[], &json!({ "language": "python", "code": "" }));
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    assert!(log.contains("failed to send traces"), "{log}");
}

#[test]
fn a_silent_collector_delays_neither_responses_nor_the_shutdown() {
    let data = data();
    // The kernel accepts connections that nothing reads.
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let url = format!("http://{}", silent.local_addr().expect("it is bound"));
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &url)]);
    execute(&server, &[], &json!({ "language": "python", "code": "" }));
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
}

#[test]
fn failures_of_the_collector_are_logged_once_and_not_for_each_batch() {
    let data = data();
    let collector = Collector::start_failing();
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &collector.url())]);
    let batches = wait_for(Duration::from_mins(1), || {
        server.get("/api/v1/health");
        (collector.batches() >= 3).then_some(())
    });
    assert!(batches.is_some(), "only {} batches were sent", collector.batches());
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    assert_eq!(log.matches("failed to send traces").count(), 1, "{log}");
}

#[test]
fn a_recovered_execution_is_traced() {
    let (data, collector) = (data(), Collector::start());
    let server = Server::start(data.path());
    let id = server.accept("import time; time.sleep(1)");
    server.wait_until_running(&id);
    server.kill();
    let server = Server::start_with(data.path(), &[("SANDBOXD_OTLP_ENDPOINT", &collector.url())]);
    assert_eq!(server.final_report(&id)["status"], "completed");
    let spans = collector.wait_for("execution", 1);
    let execution = one(&spans, "execution");
    assert_eq!(attribute(execution, "sandboxd.execution.id"), Some(id));
    assert!(execution.parent_span_id.is_empty(), "no request of this server caused it");
    assert_children(&spans, execution, &["queue", "prepare", "run", "collect"]);
}
