//! Clients that ask for much and read nothing.

use std::io::ErrorKind;
use std::time::Duration;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::server::Server;
use crate::wire::{Wire, post};

/// Short, so that a test waits for the end itself.
const SHORT: &[(&str, &str)] =
    &[("SANDBOXD_WRITE_TIMEOUT", "500ms"), ("SANDBOXD_MAX_OUTPUT", "64M")];

/// More than the sockets between a client and its server hold.
const OUTPUT: usize = 16 << 20;
const READERS: usize = 100;
/// The most that a server takes which is not asked for more than a page at a time.
const MAX_RSS_BYTES: u64 = 200 << 20;

/// Accepts a program that prints more than a client reads.
fn flood(server: &Server) -> String {
    let code = format!(
        "import sys\nfor _ in range(64): sys.stdout.write('x' * {}); sys.stdout.flush()",
        OUTPUT / 64
    );
    let limit = 2 * OUTPUT / 1024;
    let body = json!({ "language": "python", "code": code, "output_limit_kb": limit }).to_string();
    let accepted = server.send("POST", "/api/v1/execute?wait=false", &[], &body).json();
    accepted["id"].as_str().expect("an id is text").to_owned()
}

/// Waits for its end, without taking the long report apart.
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
fn a_client_that_does_not_read_its_answer_is_closed() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let id = flood(&server);
    wait_until_completed(&server, &id);
    for path in [format!("/api/v1/execute/{id}"), format!("/api/v1/execute/{id}/stream")] {
        let mut wire = Wire::with(&server, get(&path));
        assert_eq!(server.get("/api/v1/health").status, 200, "others are served meanwhile");
        wait_until_alone(&server);
        // What the sockets held comes, and then the end instead of the rest.
        let said = wire.until_closed();
        assert!(said.starts_with("HTTP/1.1 200 "), "{}", &said[..100]);
        assert!(said.len() < OUTPUT, "{} bytes came", said.len());
    }
}

/// The program does not wait for whoever watches it, and what it prints is not kept for each of them.
#[test]
fn a_program_that_floods_ends_although_nobody_reads() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    wait_until_completed(&server, &flood(&server));
    let unwatched = server.peak_memory();
    let id = flood(&server);
    let stream = get(&format!("/api/v1/execute/{id}/stream"));
    let watchers: Vec<_> = (0..READERS).map(|_| Wire::with(&server, &stream)).collect();
    wait_until_completed(&server, &id);
    wait_until_alone(&server);
    let watched = server.peak_memory() - unwatched;
    assert!(watched < (READERS * OUTPUT / 8) as u64, "they cost {} MiB", watched >> 20);
    drop(watchers);
}

/// Requests that nobody reads the answers of, one behind the other on one connection.
#[test]
fn answers_are_not_collected_for_somebody_who_only_asks() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let mut wire = Wire::to(&server);
    let get = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let error = loop {
        if let Err(error) = wire.send(&get) {
            break error;
        }
    };
    let is_closed = matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    assert!(is_closed, "it is not let wait: {error}");
    let memory = server.peak_memory();
    assert!(memory < MAX_RSS_BYTES, "the server took {} MiB", memory >> 20);
    let unread = post("/api/v1/execute", "Content-Length: 2\r\nConnection: close\r\n", "{}");
    assert!(Wire::with(&server, unread).until_closed().starts_with("HTTP/1.1 400 "));
}

/// With HTTP/2 a client need not leave its socket unread: it need only never make room in its window.
#[test]
fn a_client_of_http2_that_makes_no_room_is_closed() {
    const SETTINGS: u8 = 4;
    const HEADERS: u8 = 1;
    const INITIAL_WINDOW_SIZE: u8 = 4;
    const END_OF_REQUEST: u8 = 5;
    let frame = |kind, flags, stream, payload: &[u8]| {
        let length = u8::try_from(payload.len()).expect("the frames are short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let text =
        |text: &str| [&[u8::try_from(text.len()).expect("it is short")], text.as_bytes()].concat();
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    // GET and http are entries of a table that both sides know; :path and :authority are spelt out.
    let head =
        [&[0x82, 0x86, 0x04][..], &text("/openapi.json"), &[0x01], &text("localhost")].concat();
    let mut wire = Wire::with(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let no_room = [0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0];
    wire.send(frame(SETTINGS, 0, 0, &no_room)).expect("the server reads");
    wire.send(frame(HEADERS, END_OF_REQUEST, 1, &head)).expect("the server reads");
    let said = wire.until_closed();
    assert!(!said.contains("\"openapi\""), "nothing of the answer had room: {said}");
    let (_, log) = server.stop();
    let answered = log.lines().any(|line| line.contains("/openapi.json") && line.contains("200"));
    assert!(answered, "{log}");
}

/// Waits until nobody is connected.
#[track_caller]
fn wait_until_alone(server: &Server) {
    // Each was sent what its socket holds, which takes a while on a busy machine.
    let alone = wait_for(Duration::from_mins(2), || (server.connections() == 0).then_some(()));
    assert!(alone.is_some(), "{} connections are open", server.connections());
}
