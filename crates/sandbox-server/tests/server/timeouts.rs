//! Idle and slow connections are closed, without an effect on other clients.

use sandbox_tests::wait::wait_for;

use crate::raw_connection::{RawConnection, post};
use crate::server_process::{Server, WAIT_TIMEOUT};

const SHORT: &[(&str, &str)] = &[
    ("SANDBOXD_HEADER_TIMEOUT", "300ms"),
    ("SANDBOXD_BODY_TIMEOUT", "300ms"),
    ("SANDBOXD_IDLE_TIMEOUT", "300ms"),
];

const GET: &str = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn incomplete_headers_time_out() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    // Nothing; the first bytes of HTTP/1 and HTTP/2; part of the headers; all but their last byte.
    let beginnings = ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nHost: loc", &GET[..GET.len() - 1]];
    let mut connections = beginnings.map(|bytes| RawConnection::with(&server, bytes));
    assert_eq!(server.get("/api/v1/health").status, 200, "other clients are served");
    for (connection, beginning) in connections.iter_mut().zip(beginnings) {
        assert_eq!(connection.until_closed(), "", "{beginning:?}");
    }
}

#[test]
fn an_idle_http2_connection_times_out() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    // The preface and an empty SETTINGS frame.
    let mut connection =
        RawConnection::with(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    connection.until_closed();
}

#[test]
fn slow_headers_time_out() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let mut connection = RawConnection::with(&server, "GET /api/v1/health HTTP/1.1\r\n");
    let closed = wait_for(WAIT_TIMEOUT, || connection.send("A: b\r\n").err());
    assert!(closed.is_some(), "the connection was not closed");
}

#[test]
fn an_incomplete_body_times_out_with_408() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    for (headers, body) in [
        ("Content-Length: 100\r\n", ""),
        ("Content-Length: 100\r\n", "{\"language\": "),
        ("Transfer-Encoding: chunked\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "5\r\n{\"lan\r\n"),
        ("Transfer-Encoding: chunked\r\n", "fffffff\r\n{\"lan"),
    ] {
        let mut connection = RawConnection::with(&server, post("/api/v1/execute", headers, body));
        assert_eq!(server.get("/api/v1/health").status, 200, "other clients are served");
        let response = connection.until_closed();
        assert!(response.starts_with("HTTP/1.1 408 "), "{headers}{body}: {response}");
        assert!(response.contains("the body did not arrive within 300ms"), "{response}");
    }
}

#[test]
fn an_idle_connection_times_out() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let mut connection = RawConnection::with(&server, GET);
    connection.until("}");
    connection.send(GET).expect("the connection is open");
    connection.until("}");
    assert_eq!(connection.until_closed(), "", "no further response");
}

/// The timeouts do not apply while the server works.
#[test]
fn a_connection_stays_open_while_a_program_runs() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), SHORT);
    let code = "import time; time.sleep(2); print('done')";
    let body = serde_json::json!({ "language": "python", "code": code }).to_string();
    let length = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let response =
        RawConnection::with(&server, post("/api/v1/execute", &length, &body)).until_closed();
    assert!(
        response.starts_with("HTTP/1.1 200 ") && response.contains("\"done\\n\""),
        "{response}"
    );

    let id = server.accept(code);
    let stream = format!(
        "GET /api/v1/execute/{id}/stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    let response = RawConnection::with(&server, stream).until_closed();
    assert!(response.contains("\"report\"") && response.contains("done"), "{response}");
}
