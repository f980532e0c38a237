//! A client that sends its whole body before it reads, as most do, receives an early response.

use std::process::Command;

use sandbox_tests::skip::skip;

use crate::raw_connection::{RawConnection, post};
use crate::server_process::{Server, create_key};

/// Exceeds the buffers of the sockets.
const LARGE: usize = 20 << 20;

/// Sends everything, then reads. Returns the status.
fn status(server: &Server, path: &str, headers: &str, body: &[u8]) -> String {
    let mut connection = RawConnection::with(server, post(path, headers, ""));
    connection.send(body).unwrap_or_else(|error| {
        panic!("{path}: {headers}: the server did not read the body: {error}")
    });
    let response = connection.until_closed();
    response
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("{path}: {headers}: no response"))
        .to_owned()
}

fn announced(body: &[u8], headers: &str) -> String {
    format!("Content-Length: {}\r\nConnection: close\r\n{headers}", body.len())
}

#[test]
fn errors_reach_a_client_that_sends_a_large_body() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let key = format!("X-API-Key: {}\r\n", create_key(data.path(), "test"));
    let server = Server::start(data.path());
    let body = vec![b'x'; LARGE];
    let chunked = [format!("{LARGE:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    for _ in 0..3 {
        let status = |path, headers| status(&server, path, &announced(&body, headers), &body);
        assert_eq!(status("/api/v1/execute", &key), "413");
        assert_eq!(status("/api/v1/execute", ""), "401");
        assert_eq!(status("/api/v1/execute", "X-API-Key: wrong\r\n"), "401");
        assert_eq!(status("/api/v1/nothing", &key), "404");
        assert_eq!(status("/api/v1/health", &key), "405");
        let headers = format!("Transfer-Encoding: chunked\r\nConnection: close\r\n{key}");
        assert_eq!(self::status(&server, "/api/v1/execute", &headers, &chunked), "413");
    }
    let other_type =
        announced(&body, &key).replace("Connection", "Content-Type: text/plain\r\nConnection");
    let request = format!("POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\n{other_type}\r\n");
    let mut connection = RawConnection::with(&server, request);
    connection.send(&body).expect("the server reads the body");
    let response = connection.until_closed();
    assert!(response.starts_with("HTTP/1.1 415 "), "{response}");
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
}

#[test]
fn a_rate_limited_client_that_sends_a_large_body_receives_429() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let variables = [("SANDBOXD_BURST", "1"), ("SANDBOXD_REQUESTS_PER_MINUTE", "1")];
    create_key(data.path(), "test");
    let server = Server::start_with(data.path(), &variables);
    let body = vec![b'x'; LARGE];
    let status = || status(&server, "/api/v1/execute", &announced(&body, ""), &body);
    assert_eq!(status(), "401");
    for _ in 0..3 {
        assert_eq!(status(), "429");
    }
}

/// The connection stays open once the refused body is complete.
#[test]
fn a_refused_body_does_not_end_the_connection() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    create_key(data.path(), "test");
    let server = Server::start(data.path());
    let body = "x".repeat(1 << 20);
    let mut connection = RawConnection::open(&server);
    for _ in 0..3 {
        let headers = format!("Content-Length: {}\r\n", body.len());
        connection.send(post("/api/v1/execute", &headers, &body)).expect("the connection is open");
        let response = connection.until("}");
        assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    }
}

/// The server does not request a body only to discard it.
#[test]
fn a_refused_request_gets_no_100_continue() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    create_key(data.path(), "test");
    let server = Server::start(data.path());
    let headers = "Content-Length: 104857600\r\nExpect: 100-continue\r\nConnection: close\r\n";
    let response =
        RawConnection::with(&server, post("/api/v1/execute", headers, "")).until_closed();
    assert!(response.starts_with("HTTP/1.1 401 "), "it received 100 Continue: {response}");
}

#[test]
fn a_python_client_receives_the_response() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    create_key(data.path(), "test");
    let server = Server::start(data.path());
    let program = format!(
        "import http.client\nfor _ in range(5):\n c = http.client.HTTPConnection('{}')\n \
         c.request('POST', '/api/v1/execute', b'x' * {LARGE}, {{'Content-Type': 'application/json'}})\n \
         assert c.getresponse().status == 401\n c.close()",
        server.address
    );
    let Ok(done) = Command::new("python3").args(["-c", &program]).output() else {
        return skip("refused bodies from Python", "there is no python3");
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
