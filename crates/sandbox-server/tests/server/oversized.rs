//! Requests above the size limits.

use crate::raw_connection::{RawConnection, post};
use crate::server_process::Server;

const SHORT: &[(&str, &str)] = &[("SANDBOXD_HEADER_TIMEOUT", "2s")];

#[test]
fn many_headers_are_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let headers = |count| {
        let headers: Vec<_> = (0..count).map(|n| format!("X-{n}: y\r\n")).collect();
        let headers = headers.concat();
        format!(
            "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        )
    };
    let response = RawConnection::with(&server, headers(90)).until_closed();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    for count in [101, 1000] {
        let response = RawConnection::with(&server, headers(count)).until_closed();
        assert!(response.starts_with("HTTP/1.1 431 "), "{count}: {response}");
    }
}

#[test]
fn a_huge_header_is_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let huge = "x".repeat(200 << 10);
    for head in [
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {huge}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{huge}: x\r\n\r\n"),
        format!("GET /{huge} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let mut connection = RawConnection::open(&server);
        // The server may close the connection before the end.
        let _ = connection.send(head);
        let response = connection.until_closed();
        // Unread data can reset the connection, which discards the response.
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 431 "), "{response}");
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}

#[test]
fn endless_headers_are_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    for (beginning, more) in [
        ("", "x".repeat(4096)),
        ("GET / HTTP/1.1\r\n", "A: b\r\n".repeat(1000)),
        ("GET / HTTP/1.1\r\nA: ", "x".repeat(4096)),
    ] {
        let mut connection = RawConnection::with(&server, beginning);
        while connection.send(&more).is_ok() {}
    }
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// With and without `Content-Length`.
#[test]
fn a_body_of_a_hundred_megabytes_is_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let announced = post("/api/v1/execute", "Content-Length: 104857600\r\n", "");
    let response = RawConnection::with(&server, announced).until_closed();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert!(response.contains("\"code_too_large\""), "{response}");

    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let mut connection =
        RawConnection::with(&server, post("/api/v1/execute", "Transfer-Encoding: chunked\r\n", ""));
    let sent = (0..100).take_while(|_| connection.send(&chunk).is_ok()).count();
    assert!(sent < 100, "the server read all of it");
    let memory = server.peak_memory();
    assert!(memory < 200 << 20, "the server took {} MiB", memory >> 20);
    assert_eq!(server.get("/api/v1/health").status, 200);
}
