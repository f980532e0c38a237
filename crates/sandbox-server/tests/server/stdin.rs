//! Streamed standard input over real connections: the server or the client can end in the middle.

use serde_json::json;
use tempfile::TempDir;

use crate::raw_connection::RawConnection;
use crate::server_process::Server;

fn start() -> (TempDir, Server) {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    (data, server)
}

/// Starts a program that copies its standard input, sends it a line, and returns once the program has printed it.
fn send_a_line(server: &Server) -> (String, RawConnection) {
    let body = json!({ "language": "bash", "code": "cat; echo end", "stdin_stream": true });
    let accepted = server.send("POST", "/api/v1/execute?wait=false", &[], &body.to_string());
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let id = accepted.json()["id"].as_str().expect("an id is text").to_owned();
    let head = format!(
        "POST /api/v1/execute/{id}/stdin HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let input = RawConnection::with(server, format!("{head}5\r\nline\n\r\n"));
    let events = format!(
        "GET /api/v1/execute/{id}/stream HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    );
    RawConnection::with(server, events).until("\"data\":\"line\\n\"");
    (id, input)
}

#[test]
fn the_program_reads_until_the_client_ends_the_body() {
    let (_data, server) = start();
    let (id, mut input) = send_a_line(&server);
    input.send("3\r\ntwo\r\n0\r\n\r\n").expect("the server reads");
    input.until("HTTP/1.1 204 No Content\r\n");
    let report = server.final_report(&id);
    assert_eq!(report["stdout"], "line\ntwoend\n", "{report}");
}

#[test]
fn a_client_that_disconnects_cancels_the_execution() {
    let (_data, server) = start();
    let (id, input) = send_a_line(&server);
    drop(input);
    let report = server.final_report(&id);
    assert_eq!(report["status"], "cancelled", "{report}");
}

#[test]
fn an_execution_whose_server_was_killed_does_not_run_again() {
    let (data, server) = start();
    let (id, _input) = send_a_line(&server);
    server.kill();
    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["status"], "error", "{report}");
    let reason = report["error"].as_str().expect("an error has a reason");
    assert!(reason.contains("standard input"), "{report}");
}
