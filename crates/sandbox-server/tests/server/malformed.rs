//! Malformed HTTP and JSON.

use crate::raw_connection::{RawConnection, post};
use crate::server_process::Server;

const EXECUTE: &str = "/api/v1/execute";

/// Sends bytes, and returns everything until the server closes the connection.
fn exchange(server: &Server, bytes: impl AsRef<[u8]>) -> String {
    RawConnection::with(server, bytes).until_closed()
}

#[test]
fn an_invalid_body_is_a_problem() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let deep = format!("{{\"language\": \"python\", \"env\": {}", "{\"a\":".repeat(500_000));
    let wide = "[".repeat(1_000_000);
    let bodies: [&[u8]; 6] = [
        b"{",
        b"\0",
        b"{\"language\": \"\xff\xfe\"}",
        b"{\"language\": \"\\ud800\"}",
        wide.as_bytes(),
        deep.as_bytes(),
    ];
    for body in bodies {
        let headers = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
        let request = [post(EXECUTE, &headers, "").as_bytes(), body].concat();
        let response = exchange(&server, request);
        let start = &body[..body.len().min(40)];
        assert!(response.starts_with("HTTP/1.1 400 "), "{}: {response}", start.escape_ascii());
        assert!(response.contains("\"invalid_body\""), "{response}");
    }
}

#[test]
fn a_wrong_content_length_is_no_second_request() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let body = "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}";
    let request = |headers: &str| post(EXECUTE, &format!("{headers}Connection: close\r\n"), body);
    let with = |headers: &str| exchange(&server, request(headers));
    // Longer than the body: the connection ends within it.
    let mut cut = RawConnection::with(&server, request("Content-Length: 1000\r\n"));
    cut.shut_down();
    let cut = cut.until_closed();
    assert!(!cut.contains("HTTP/1.1 200"), "{cut}");
    // Shorter than the body: the rest is not a request.
    let short = with("Content-Length: 10\r\n");
    assert!(short.starts_with("HTTP/1.1 400 "), "{short}");
    assert!(!short.contains("stdout"), "{short}");
    // Request smuggling: ambiguous lengths.
    for headers in [
        "Content-Length: 10\r\nContent-Length: 11\r\n",
        "Content-Length: 46, 47\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x2e\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    ] {
        let response = with(headers);
        assert!(!response.contains("HTTP/1.1 200"), "{headers}: {response}");
    }
}

/// Request smuggling: the server uses the chunks, and closes the connection, since a proxy may have used the length.
#[test]
fn content_length_is_ignored_with_chunks() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let headers = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let smuggled = "0\r\n\r\nGET /api/v1/runtimes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let response = exchange(&server, post(EXECUTE, headers, smuggled));
    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
}

#[test]
fn invalid_chunks_are_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    for chunks in ["x\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "2\r\n{}0\r\n\r\n"] {
        let request = post(EXECUTE, "Transfer-Encoding: chunked\r\n", chunks);
        let response = exchange(&server, request);
        assert!(
            response.starts_with("HTTP/1.1 400 ") || response.is_empty(),
            "{chunks:?}: {response}"
        );
    }
}

#[test]
fn other_protocols_are_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let requests: [&[u8]; 8] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\0b: c\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ];
    for request in requests {
        let response = exchange(&server, request);
        assert!(!response.contains("HTTP/1.1 200"), "{}: {response}", request.escape_ascii());
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}
