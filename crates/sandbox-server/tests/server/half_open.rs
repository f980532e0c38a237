//! Clients that connect and then leave the server waiting: each is closed in its time, and nobody else
//! notices them.

use sandbox_tests::wait::wait_for;

use crate::server::{SOON, Server};
use crate::wire::{Wire, post};

/// Short, so that a test waits for the end itself.
const SHORT: &[(&str, &str)] = &[
    ("SANDBOXD_HEADER_TIMEOUT", "300ms"),
    ("SANDBOXD_BODY_TIMEOUT", "300ms"),
    ("SANDBOXD_IDLE_TIMEOUT", "300ms"),
];

const GET: &str = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_head_that_does_not_come_closes_the_connection() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    // Nothing; the beginning of either version of HTTP; part of a head; a head but for its last byte.
    let beginnings = ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nHost: loc", &GET[..GET.len() - 1]];
    let mut wires = beginnings.map(|bytes| Wire::with(&server, bytes));
    assert_eq!(server.get("/api/v1/health").status, 200, "others are served meanwhile");
    for (wire, beginning) in wires.iter_mut().zip(beginnings) {
        assert_eq!(wire.until_closed(), "", "{beginning:?}");
    }
}

#[test]
fn a_connection_of_http2_that_asks_for_nothing_is_closed() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    // The preface, and settings that set nothing.
    let mut wire = Wire::with(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    wire.until_closed();
}

#[test]
fn a_head_that_comes_drop_by_drop_is_not_waited_for() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let mut wire = Wire::with(&server, "GET /api/v1/health HTTP/1.1\r\n");
    let drops = wait_for(SOON, || wire.send("A: b\r\n").err());
    assert!(drops.is_some(), "whoever keeps sending is closed all the same");
}

#[test]
fn a_body_that_does_not_come_is_answered_and_the_connection_closed() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    for (headers, body) in [
        ("Content-Length: 100\r\n", ""),
        ("Content-Length: 100\r\n", "{\"language\": "),
        ("Transfer-Encoding: chunked\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "5\r\n{\"lan\r\n"),
        ("Transfer-Encoding: chunked\r\n", "fffffff\r\n{\"lan"),
    ] {
        let mut wire = Wire::with(&server, post("/api/v1/execute", headers, body));
        assert_eq!(server.get("/api/v1/health").status, 200, "others are served meanwhile");
        let said = wire.until_closed();
        assert!(said.starts_with("HTTP/1.1 408 "), "{headers}{body}: {said}");
        assert!(said.contains("the body did not arrive within 300ms"), "{said}");
    }
}

#[test]
fn a_connection_is_kept_for_the_next_request_but_not_for_ever() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let mut wire = Wire::with(&server, GET);
    wire.until("}");
    wire.send(GET).expect("it is kept");
    wire.until("}");
    assert_eq!(wire.until_closed(), "", "there was nothing more to say");
}

/// Waiting for the server is not the client's fault, however short its own times are.
#[test]
fn nobody_is_closed_while_their_program_runs() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let code = "import time; time.sleep(2); print('done')";
    let body = serde_json::json!({ "language": "python", "code": code }).to_string();
    let length = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let said = Wire::with(&server, post("/api/v1/execute", &length, &body)).until_closed();
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("\"done\\n\""), "{said}");

    let id = server.accept(code);
    let stream = format!(
        "GET /api/v1/execute/{id}/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    let said = Wire::with(&server, stream).until_closed();
    assert!(said.contains("\"report\"") && said.contains("done"), "{said}");
}
