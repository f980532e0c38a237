use super::super::clock::Timeouts;
use super::super::test_server::{Line, TestServer};
use super::*;
use crate::output::fixtures;
use sandbox::StreamKind;
use std::time::Duration;

fn say(text: impl Into<String>) -> Line {
    Line::Say(text.into())
}

fn answer(status: &str, body: &str) -> Vec<Line> {
    let length = body.len();
    vec![say(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}"))]
}

fn receipt() -> Vec<Line> {
    answer("202 Accepted", r#"{"id":"exec_1","status":"queued"}"#)
}

/// A stream of these events in chunks, without its end.
fn stream(events: &[Event]) -> Vec<Line> {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = events.iter().map(|event| {
        let data = serde_json::to_string(event).unwrap();
        let text = format!(": alive\n\nid: {}\ndata: {data}\n\n", event.seq);
        say(format!("{:x}\r\n{text}\r\n", text.len()))
    });
    std::iter::once(say(head)).chain(chunks).collect()
}

fn output(seq: u64) -> Event {
    Event { seq, kind: EventKind::Output(StreamKind::Stdout, seq.to_string().into_bytes()) }
}

fn report(seq: u64) -> Event {
    Event { seq, kind: EventKind::Report(Box::new(fixtures::report())) }
}

fn run(server: &TestServer) -> RemoteRun {
    let timeouts = Timeouts { pause: Duration::from_millis(1), ..Timeouts::default() };
    RemoteRun {
        client: server.client().with_timeouts(timeouts),
        body: b"{}".to_vec(),
        idempotency_key: "exec_0".to_owned(),
    }
}

fn execute(server: &TestServer) -> (Vec<u64>, Result<Report, Failure>) {
    let mut told = Vec::new();
    let mut tell = |event: Event| told.push(event.seq);
    let result = run(server).execute(&mut tell, &CancelToken::new());
    (told, result)
}

#[test]
fn an_execution_is_handed_in_and_followed_to_its_report() {
    let server = TestServer::new(vec![receipt(), stream(&[output(1), output(2), report(3)])]);
    let (told, result) = execute(&server);
    assert_eq!((told, result.unwrap().exit_code), (vec![1, 2, 3], 0));
    let requests = server.requests();
    assert!(
        requests[0].starts_with("POST /api/v1/execute?wait=false HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(requests[0].contains("\r\nIdempotency-Key: exec_0\r\n"), "{requests:?}");
    assert!(
        requests[1].starts_with("GET /api/v1/execute/exec_1/stream HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(!requests[1].contains("Last-Event-ID"), "{requests:?}");
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_and_nothing_is_told_twice() {
    let mut broken = stream(&[output(1), output(2)]);
    // A chunk, and an event in it, that the end of the connection cuts.
    broken.push(say("ff\r\ndata: {\"seq\":3,\"ty"));
    let server = TestServer::new(vec![
        receipt(),
        broken,
        vec![],
        answer("503 Service Unavailable", ""),
        stream(&[output(2), output(3), report(4)]),
    ]);
    let (told, result) = execute(&server);
    assert_eq!((told, result.is_ok()), (vec![1, 2, 3, 4], true));
    let requests = server.requests();
    for request in &requests[2..] {
        assert!(request.contains("\r\nLast-Event-ID: 2\r\n"), "{request}");
    }
}

#[test]
fn silence_is_borne_but_a_server_that_always_hangs_up_is_given_up() {
    let mut silent = stream(&[output(1)]);
    silent.push(Line::WaitForTheClient);
    let mut answers = vec![receipt(), silent];
    answers.extend((0..=MAX_ATTEMPTS).map(|_| stream(&[])));
    let server = TestServer::new(answers);
    let mut run = run(&server);
    let timeouts = Timeouts {
        pause: Duration::from_millis(1),
        silence: Duration::from_millis(100),
        ..Timeouts::default()
    };
    run.client = run.client.with_timeouts(timeouts);
    let failure = run.execute(&mut |_| {}, &CancelToken::new()).unwrap_err();
    let message = failure.message().unwrap();
    assert!(
        message.contains("lost the connection") && message.contains("closed the connection"),
        "{message}"
    );
    assert_eq!(failure.exit_code(), 125);
}

#[test]
fn a_receipt_that_was_lost_is_asked_for_again_under_the_same_name() {
    let server = TestServer::new(vec![vec![say("HTTP/1.1 20")], receipt(), stream(&[report(1)])]);
    assert!(execute(&server).1.is_ok());
    let requests = server.requests();
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn a_cancelled_token_deletes_the_execution() {
    let server = TestServer::new(vec![receipt(), answer("200 OK", "{}")]);
    let cancel = CancelToken::new();
    let run = run(&server);
    assert_eq!(run.hand_in().unwrap(), "exec_1");
    let resource = "/api/v1/execute/exec_1";
    let registration = delete_on_cancel(&run.client, resource, &cancel).unwrap();
    cancel.cancel();
    drop(registration);
    // Waits until the second request was made.
    let requests = server.requests();
    assert!(requests[1].starts_with("DELETE /api/v1/execute/exec_1 HTTP/1.1\r\n"), "{requests:?}");
}

#[test]
fn an_execution_whose_events_are_gone_still_has_its_report() {
    let failed =
        r#"{"type":"error","problem":{"code":"internal","status":500,"title":"","detail":"x"}}"#;
    let mut failing = stream(&[output(1)]);
    let text = format!("data: {failed}\n\n");
    failing.push(say(format!("{:x}\r\n{text}\r\n", text.len())));
    let report = serde_json::to_string(&fixtures::report()).unwrap();
    let server = TestServer::new(vec![
        receipt(),
        failing,
        answer("204 No Content", ""),
        answer("200 OK", &report),
    ]);
    let (told, result) = execute(&server);
    assert_eq!((told, result.unwrap().stdout.as_str()), (vec![1, 2, 3], "hello\n"));
    assert!(server.requests()[3].starts_with("GET /api/v1/execute/exec_1 HTTP/1.1\r\n"));
}

#[test]
fn refusals_are_told_in_the_words_of_the_server() {
    let problem = |status: u16, detail: &str| {
        let problem = sandbox_api::Problem {
            status,
            ..sandbox_api::Problem::new(sandbox_api::Code::InvalidField, detail)
        };
        serde_json::to_string(&problem).unwrap()
    };
    for (status, body, code, part) in [
        ("400 Bad", problem(400, "pids: too many"), 2, "sandbox-run: pids: too many"),
        ("503 Later", problem(503, "the queue is full"), 125, "sandbox-run: the queue is full"),
        ("401 No", problem(401, "no"), 2, "requires an API key: set SANDBOX_RUN_API_KEY"),
        ("404 No", "Not Found".to_owned(), 2, "status 404: Not Found"),
        ("301 Moved", String::new(), 125, "status 301"),
        ("500 Oh", "x".repeat(5000), 125, "status 500"),
        ("200 OK", "[]".to_owned(), 125, "invalid response to the request"),
        ("202 OK", r#"{"id":"../x","status":"queued"}"#.to_owned(), 125, "invalid response"),
    ] {
        let server = TestServer::new(vec![answer(status, &body)]);
        let failure = execute(&server).1.unwrap_err();
        let message = failure.message().unwrap();
        assert!(message.contains(part) && message.len() < 200, "{message}");
        assert_eq!(failure.exit_code(), code, "{message}");
    }
}

#[test]
fn a_server_that_is_not_there_is_said_not_to_be() {
    let server = TestServer::new(vec![]);
    let run = run(&server);
    drop(server);
    let failure = run.execute(&mut |_| {}, &CancelToken::new()).unwrap_err();
    let message = failure.message().unwrap();
    assert!(message.ends_with("; is sandboxd running?"), "{message}");
}
