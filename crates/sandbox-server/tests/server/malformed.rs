//! What is not HTTP, not JSON, or a lie about itself.

use crate::server::Server;
use crate::wire::{Wire, post};

const EXECUTE: &str = "/api/v1/execute";

/// All that is said to this. It is the server that hangs up.
fn said(server: &Server, bytes: impl AsRef<[u8]>) -> String {
    Wire::with(server, bytes).until_closed()
}

#[test]
fn a_body_that_makes_no_sense_is_told_so() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
        let answer = said(&server, request);
        let start = &body[..body.len().min(40)];
        assert!(answer.starts_with("HTTP/1.1 400 "), "{}: {answer}", start.escape_ascii());
        assert!(answer.contains("\"invalid_body\""), "{answer}");
    }
}

#[test]
fn a_length_that_is_a_lie_fools_nobody() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let body = "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}";
    let request = |headers: &str| post(EXECUTE, &format!("{headers}Connection: close\r\n"), body);
    let with = |headers: &str| said(&server, request(headers));
    // More than comes: the connection ends in the middle.
    let mut cut = Wire::with(&server, request("Content-Length: 1000\r\n"));
    cut.end();
    let cut = cut.until_closed();
    assert!(!cut.contains("HTTP/1.1 200"), "{cut}");
    // Less than comes: what is left over is not a request, and no second answer pretends it was.
    let short = with("Content-Length: 10\r\n");
    assert!(short.starts_with("HTTP/1.1 400 "), "{short}");
    assert!(!short.contains("stdout"), "{short}");
    // Two lengths, or a length and chunks, are how requests are smuggled past proxies.
    for headers in [
        "Content-Length: 10\r\nContent-Length: 11\r\n",
        "Content-Length: 46, 47\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x2e\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    ] {
        let answer = with(headers);
        assert!(!answer.contains("HTTP/1.1 200"), "{headers}: {answer}");
    }
}

/// The chunks count, and the connection is not used again: whatever stands behind them is of a request
/// that somebody on the way may have seen elsewhere.
#[test]
fn a_length_beside_chunks_is_not_believed() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let headers = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    let smuggled = "0\r\n\r\nGET /api/v1/runtimes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = said(&server, post(EXECUTE, headers, smuggled));
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

#[test]
fn chunks_that_are_none_are_refused() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    for chunks in ["x\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "2\r\n{}0\r\n\r\n"] {
        let request = post(EXECUTE, "Transfer-Encoding: chunked\r\n", chunks);
        let answer = said(&server, request);
        assert!(answer.starts_with("HTTP/1.1 400 ") || answer.is_empty(), "{chunks:?}: {answer}");
    }
}

#[test]
fn what_is_no_http_is_hung_up_on() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
        let answer = said(&server, request);
        assert!(!answer.contains("HTTP/1.1 200"), "{}: {answer}", request.escape_ascii());
    }
    assert_eq!(server.get("/api/v1/health").status, 200);
}
