//! Streams of events: resumed, repeated, lost and cancelled.

use std::time::Duration;

use sandbox_api::ExecuteRequest;
use sandbox_client::{Client, Error, MAX_ATTEMPTS, Timeouts};
use sandbox_core::{CancelToken, Event, EventKind, ExecutionId, Report, StreamKind};
use serde_json::json;

use crate::server::{ScriptedServer, Step, response, send};

/// A stream of these events in chunks, without its end.
fn stream(events: &[Event]) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let events = events.iter().map(|event| {
        let data = serde_json::to_string(event).unwrap();
        chunk(&format!(": alive\n\nid: {}\ndata: {data}\n\n", event.seq))
    });
    std::iter::once(send(head)).chain(events).collect()
}

/// The response to a request that streams the events of the execution `exec_1`.
fn started(events: &[Event]) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\
                Location: /api/v1/execute/exec_1\r\n\r\n";
    std::iter::once(send(head)).chain(stream(events).into_iter().skip(1)).collect()
}

fn chunk(text: &str) -> Step {
    send(format!("{:x}\r\n{text}\r\n", text.len()))
}

fn output(seq: u64) -> Event {
    Event { seq, kind: EventKind::Output(StreamKind::Stdout, seq.to_string().into_bytes()) }
}

fn report(seq: u64) -> Event {
    let report = serde_json::from_str(&report_json()).unwrap();
    Event { seq, kind: EventKind::Report(Box::new(report)) }
}

fn report_json() -> String {
    let report = json!({
        "id": ExecutionId::generate(), "status": "completed", "stage": "run", "success": true,
        "language": "python", "version": "3.11", "isolation": "native", "stdout": "hello\n", "stderr": "",
        "output": "hello\n", "stdout_truncated": false, "stderr_truncated": false, "error": null,
        "exit_code": 0, "signal": null, "execution_time_ms": 1.0, "cpu_time_ms": 1.0, "memory_used_kb": 1,
        "memory_used_mb": 1, "stages": [], "output_files": [], "enforced": [], "violations": [],
        "timings_ms": {"queue": 0.0, "prepare": 0.0, "compile": 0.0, "run": 0.0, "collect": 0.0},
        "created_at": "2026-01-01T00:00:00Z",
    });
    report.to_string()
}

/// The numbers of the events that were passed on, and the result.
fn follow(client: &Client) -> (Vec<u64>, Result<Report, Error>) {
    let mut numbers = Vec::new();
    let mut on_event = |event: Event| numbers.push(event.seq);
    let result = client.follow("exec_1", &mut on_event, &CancelToken::new());
    (numbers, result)
}

#[test]
fn an_execution_is_followed_to_its_report() {
    let server = ScriptedServer::new(vec![stream(&[output(1), output(2), report(3)])]);
    let (numbers, result) = follow(&server.client());
    assert_eq!((numbers, result.unwrap().stdout.as_str()), (vec![1, 2, 3], "hello\n"));
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /api/v1/execute/exec_1/stream HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\naccept: text/event-stream\r\n"), "{request}");
    assert!(!request.contains("last-event-id"), "{request}");
}

/// The same for an execution that this submits.
fn execute(client: &Client) -> (Vec<u64>, Result<Report, Error>) {
    let mut numbers = Vec::new();
    let mut on_event = |event: Event| numbers.push(event.seq);
    let request = ExecuteRequest::default();
    let result = client.execute_streaming(&request, "exec_0").and_then(|(id, events)| {
        client.follow_stream(&id, events, &mut on_event, &CancelToken::new())
    });
    (numbers, result)
}

#[test]
fn an_execution_is_submitted_and_followed_with_one_request() {
    let server = ScriptedServer::new(vec![started(&[output(1), output(2), report(3)])]);
    let (numbers, result) = execute(&server.client());
    assert_eq!((numbers, result.unwrap().stdout.as_str()), (vec![1, 2, 3], "hello\n"));
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /api/v1/execute HTTP/1.1\r\n"), "{request}");
    for header in ["accept: text/event-stream", "idempotency-key: exec_0"] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
}

#[test]
fn a_submitted_execution_is_followed_after_the_connection_breaks() {
    let (first, rest) = (started(&[output(1)]), stream(&[output(2), report(3)]));
    // Nothing, the beginning of the events, and the rest of them.
    let server = ScriptedServer::new(vec![vec![], first, rest]);
    let (numbers, result) = execute(&server.client());
    assert_eq!((numbers, result.is_ok()), (vec![1, 2, 3], true));
    let requests = server.requests();
    assert_eq!(requests[0], requests[1]);
    assert!(requests[2].starts_with("GET /api/v1/execute/exec_1/stream "), "{requests:?}");
    assert!(requests[2].contains("\r\nlast-event-id: 1\r\n"), "{requests:?}");
}

#[test]
fn an_execution_that_its_server_lost_is_no_error_of_the_request() {
    let missing = response("404 Not Found", "no such execution");
    let server = ScriptedServer::new(vec![started(&[output(1)]), missing]);
    let error = execute(&server.client()).1.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
}

#[test]
fn a_response_without_events_or_an_id_is_refused() {
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nLocation: /a/.\r\n\r\n";
    for (steps, part) in [
        (response("200 OK", &report_json()), "it has no events"),
        (vec![send(events)], "it has an invalid id"),
    ] {
        let server = ScriptedServer::new(vec![steps]);
        let error = execute(&server.client()).1.unwrap_err().to_string();
        assert!(error.ends_with(part), "{error}");
    }
}

#[test]
fn a_broken_stream_is_resumed_and_no_event_is_passed_on_twice() {
    let mut broken = stream(&[output(1), output(2)]);
    // A chunk, and an event in it, that the end of the connection cuts off.
    broken.push(send("ff\r\ndata: {\"seq\":3,\"ty"));
    let server = ScriptedServer::new(vec![
        broken,
        vec![],
        response("503 Service Unavailable", ""),
        stream(&[output(2), output(3), report(4)]),
    ]);
    let (numbers, result) = follow(&server.client());
    assert_eq!((numbers, result.is_ok()), (vec![1, 2, 3, 4], true));
    for request in &server.requests()[1..] {
        assert!(request.contains("\r\nlast-event-id: 2\r\n"), "{request}");
    }
}

#[test]
fn silence_is_no_failure_but_closed_connections_are() {
    let mut silent = stream(&[output(1)]);
    silent.push(Step::AwaitClose);
    let mut scripts = vec![silent];
    scripts.extend((0..=MAX_ATTEMPTS).map(|_| stream(&[])));
    let server = ScriptedServer::new(scripts);
    let silence = Duration::from_millis(100);
    let client = server.client_with(Timeouts { silence, ..Timeouts::default() });
    let message = follow(&client).1.unwrap_err().to_string();
    let (start, end) = ("lost the connection to execution exec_1: ", "response was complete");
    assert!(message.starts_with(start) && message.ends_with(end), "{message}");
}

#[test]
fn a_stream_that_is_not_one_of_events_is_an_error_at_once() {
    for (text, part) in [
        ("data: {}\n\n", "the server sent an event that cannot be read"),
        ("data: \u{fffd}\n\n", "the server sent an event that cannot be read"),
    ] {
        let mut steps = stream(&[output(1)]);
        steps.push(chunk(text));
        let server = ScriptedServer::new(vec![steps]);
        let (numbers, result) = follow(&server.client());
        assert_eq!((numbers, result.unwrap_err().to_string().as_str()), (vec![1], part));
    }
}

#[test]
fn an_execution_without_further_events_still_has_its_report() {
    let failed = json!({
        "type": "error",
        "problem": {"code": "internal", "status": 500, "title": "", "detail": "x"},
    });
    let mut failing = stream(&[output(1)]);
    failing.push(chunk(&format!("data: {failed}\n\n")));
    let over = response("204 No Content", "");
    let server = ScriptedServer::new(vec![failing, over, response("200 OK", &report_json())]);
    let (numbers, result) = follow(&server.client());
    assert_eq!((numbers, result.unwrap().stdout.as_str()), (vec![1, 2, 3], "hello\n"));
    let request = server.requests().remove(2);
    assert!(request.starts_with("GET /api/v1/execute/exec_1 HTTP/1.1\r\n"), "{request}");
}

#[test]
fn a_cancelled_token_cancels_the_execution_and_its_report_follows() {
    // The two connections come in any order.
    let server = ScriptedServer::new(vec![stream(&[report(1)]), stream(&[report(1)])]);
    let cancel = CancelToken::new();
    cancel.cancel();
    assert!(server.client().follow("exec_1", &mut |_| {}, &cancel).is_ok());
    let requests = server.requests();
    let delete = "DELETE /api/v1/execute/exec_1 HTTP/1.1\r\n";
    assert!(requests.iter().any(|request| request.starts_with(delete)), "{requests:?}");
}
