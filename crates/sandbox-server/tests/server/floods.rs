//! More of everything than anybody needs.

use crate::server::Server;
use crate::wire::{Wire, post};

const SHORT: &[(&str, &str)] = &[("SANDBOXD_HEADER_TIMEOUT", "2s")];

#[test]
fn many_headers_are_refused() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let headers = |count| {
        let headers: Vec<_> = (0..count).map(|n| format!("X-{n}: y\r\n")).collect();
        let headers = headers.concat();
        format!(
            "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        )
    };
    let said = Wire::with(&server, headers(90)).until_closed();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    for count in [101, 1000] {
        let said = Wire::with(&server, headers(count)).until_closed();
        assert!(said.starts_with("HTTP/1.1 431 "), "{count}: {said}");
    }
}

#[test]
fn a_huge_header_is_refused() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    let huge = "x".repeat(200 << 10);
    for head in [
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {huge}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{huge}: x\r\n\r\n"),
        format!("GET /{huge} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let mut wire = Wire::to(&server);
        // It may have heard enough before the end.
        let _ = wire.send(head);
        let said = wire.until_closed();
        // The answer is lost if the rest of the flood resets the connection.
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431 "), "{said}");
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}

#[test]
fn endless_headers_end() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), SHORT);
    for (beginning, more) in [
        ("", "x".repeat(4096)),
        ("GET / HTTP/1.1\r\n", "A: b\r\n".repeat(1000)),
        ("GET / HTTP/1.1\r\nA: ", "x".repeat(4096)),
    ] {
        let mut wire = Wire::with(&server, beginning);
        while wire.send(&more).is_ok() {}
    }
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// Neither an announced body nor one that just does not stop is taken in.
#[test]
fn a_body_of_a_hundred_megabytes_is_refused() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let announced = post("/api/v1/execute", "Content-Length: 104857600\r\n", "");
    let said = Wire::with(&server, announced).until_closed();
    assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
    assert!(said.contains("\"code_too_large\""), "{said}");

    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let mut wire =
        Wire::with(&server, post("/api/v1/execute", "Transfer-Encoding: chunked\r\n", ""));
    let sent = (0..100).take_while(|_| wire.send(&chunk).is_ok()).count();
    assert!(sent < 100, "the server listened to all of it");
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
    assert_eq!(server.get("/api/v1/health").status, 200);
}
