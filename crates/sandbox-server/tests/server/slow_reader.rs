//! Clients that do not read their responses.

use std::io::ErrorKind;
use std::time::Duration;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::raw_connection::{RawConnection, post};
use crate::server_process::Server;

const SHORT: &[(&str, &str)] =
    &[("SANDBOXD_WRITE_TIMEOUT", "500ms"), ("SANDBOXD_MAX_OUTPUT", "64M")];

/// Exceeds the buffers of the sockets.
const OUTPUT: usize = 16 << 20;
const READERS: usize = 100;
/// Maximum resident memory of the server.
const MAX_RSS_BYTES: u64 = 200 << 20;

/// Starts a program with more output than a client reads.
fn start_large_output(server: &Server) -> String {
    let code = format!(
        "import sys\nfor _ in range(64): sys.stdout.write('x' * {}); sys.stdout.flush()",
        OUTPUT / 64
    );
    let limit = 2 * OUTPUT / 1024;
    let body = json!({ "language": "python", "code": code, "output_limit_kb": limit }).to_string();
    let accepted = server.send("POST", "/api/v1/execute?wait=false", &[], &body).json();
    accepted["id"].as_str().expect("an id is text").to_owned()
}

/// Waits for the end, without parsing the long report.
fn wait_until_completed(server: &Server, id: &str) {
    let path = format!("/api/v1/execute/{id}?wait=10");
    let is_completed = || server.get(&path).body.contains("\"status\":\"completed\"");
    let completed = wait_for(Duration::from_mins(1), || is_completed().then_some(()));
    assert!(completed.is_some(), "{id} did not complete");
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream, */*\r\n\r\n")
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let id = start_large_output(&server);
    wait_until_completed(&server, &id);
    for path in [format!("/api/v1/execute/{id}"), format!("/api/v1/execute/{id}/stream")] {
        let mut connection = RawConnection::with(&server, get(&path));
        assert_eq!(server.get("/api/v1/health").status, 200, "other clients are served");
        wait_until_disconnected(&server);
        // The buffered part arrives, and the connection ends before the rest.
        let response = connection.until_closed();
        assert!(response.starts_with("HTTP/1.1 200 "), "{}", &response[..100]);
        assert!(response.len() < OUTPUT, "{} bytes came", response.len());
    }
}

/// The program does not wait for clients, and its output is not buffered for each of them.
#[test]
fn a_program_finishes_although_its_clients_do_not_read() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    wait_until_completed(&server, &start_large_output(&server));
    let without_clients = server.peak_memory();
    let id = start_large_output(&server);
    let stream = get(&format!("/api/v1/execute/{id}/stream"));
    let streams: Vec<_> = (0..READERS).map(|_| RawConnection::with(&server, &stream)).collect();
    wait_until_completed(&server, &id);
    wait_until_disconnected(&server);
    let with_clients = server.peak_memory() - without_clients;
    assert!(
        with_clients < (READERS * OUTPUT / 8) as u64,
        "the clients cost {} MiB",
        with_clients >> 20
    );
    drop(streams);
}

/// Pipelined requests whose responses the client does not read.
#[test]
fn responses_to_pipelined_requests_are_not_buffered() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let mut connection = RawConnection::open(&server);
    let get = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let error = loop {
        if let Err(error) = connection.send(&get) {
            break error;
        }
    };
    let is_closed = matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    assert!(is_closed, "the connection must be closed: {error}");
    let memory = server.peak_memory();
    assert!(memory < MAX_RSS_BYTES, "the server took {} MiB", memory >> 20);
    let unread = post("/api/v1/execute", "Content-Length: 2\r\nConnection: close\r\n", "{}");
    assert!(RawConnection::with(&server, unread).until_closed().starts_with("HTTP/1.1 400 "));
}

/// With HTTP/2, a client can read its socket and never extend its flow-control window.
#[test]
fn an_http2_client_with_a_full_window_is_disconnected() {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    const INITIAL_WINDOW_SIZE: u8 = 4;
    const END_STREAM_AND_HEADERS: u8 = 5;
    let frame = |kind, flags, stream, payload: &[u8]| {
        let length = u8::try_from(payload.len()).expect("the frames are short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let text =
        |text: &str| [&[u8::try_from(text.len()).expect("it is short")], text.as_bytes()].concat();
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    // HPACK: GET and http are in the static table; :path and :authority are literals.
    let head =
        [&[0x82, 0x86, 0x04][..], &text("/openapi.json"), &[0x01], &text("localhost")].concat();
    let mut connection = RawConnection::with(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let zero_window = [0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0];
    connection.send(frame(SETTINGS, 0, 0, &zero_window)).expect("the server reads");
    connection.send(frame(HEADERS, END_STREAM_AND_HEADERS, 1, &head)).expect("the server reads");
    let response = connection.until_closed();
    assert!(!response.contains("\"openapi\""), "the response has data: {response}");
    let (_, log) = server.stop();
    let answered = log.lines().any(|line| line.contains("/openapi.json") && line.contains("200"));
    assert!(answered, "{log}");
}

/// Waits until all connections are closed.
#[track_caller]
fn wait_until_disconnected(server: &Server) {
    // Filling the buffers of the sockets takes a while on a busy machine.
    let closed = wait_for(Duration::from_mins(2), || (server.connections() == 0).then_some(()));
    assert!(closed.is_some(), "{} connections are open", server.connections());
}
