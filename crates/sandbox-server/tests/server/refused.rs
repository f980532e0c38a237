//! A client that sends its whole body before it reads, as most do, gets the answer that refuses it.

use std::process::Command;

use sandbox_tests::skip::skip;

use crate::server::{Server, create_key};
use crate::wire::{Wire, post};

/// Far more than sockets buffer.
const LARGE: usize = 20 << 20;

/// Sends everything and only then reads. Gives the status.
fn status(server: &Server, path: &str, headers: &str, body: &[u8]) -> String {
    let mut wire = Wire::with(server, post(path, headers, ""));
    wire.send(body)
        .unwrap_or_else(|error| panic!("{path}: {headers}: not heard to the end: {error}"));
    let said = wire.until_closed();
    said.split(' ').nth(1).unwrap_or_else(|| panic!("{path}: {headers}: no answer")).to_owned()
}

fn announced(body: &[u8], headers: &str) -> String {
    format!("Content-Length: {}\r\nConnection: close\r\n{headers}", body.len())
}

#[test]
fn whoever_sends_too_much_or_in_vain_reads_why() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
    let mut wire = Wire::with(&server, request);
    wire.send(&body).expect("it is heard to the end");
    let said = wire.until_closed();
    assert!(said.starts_with("HTTP/1.1 415 "), "{said}");
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
}

#[test]
fn whoever_comes_too_often_reads_it_whatever_they_send() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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

/// The connection is kept for the next request if the body that was refused came to its end.
#[test]
fn a_refused_body_does_not_end_the_connection() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    create_key(data.path(), "test");
    let server = Server::start(data.path());
    let body = "x".repeat(1 << 20);
    let mut wire = Wire::to(&server);
    for _ in 0..3 {
        let headers = format!("Content-Length: {}\r\n", body.len());
        wire.send(post("/api/v1/execute", &headers, &body)).expect("it is kept");
        let said = wire.until("}");
        assert!(said.starts_with("HTTP/1.1 401 "), "{said}");
    }
}

/// Asking for the body only to throw it away would help nobody.
#[test]
fn a_client_that_asks_before_it_sends_is_spared_its_body() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    create_key(data.path(), "test");
    let server = Server::start(data.path());
    let headers = "Content-Length: 104857600\r\nExpect: 100-continue\r\nConnection: close\r\n";
    let said = Wire::with(&server, post("/api/v1/execute", headers, "")).until_closed();
    assert!(said.starts_with("HTTP/1.1 401 "), "it was told to go on: {said}");
}

#[test]
fn clients_of_others_read_the_answer() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
