//! Many concurrent clients, and exhausted resources.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::thread;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::raw_connection::{RawConnection, post};
use crate::server_process::{Server, WAIT_TIMEOUT};

const CLIENTS: usize = 200;

/// Sends a request, and returns the status and the whole response.
fn run(server: &Server, n: usize) -> (u16, String) {
    let code = format!("print({n} * 7)");
    let body = json!({ "language": "python", "code": code }).to_string();
    let headers = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let response =
        RawConnection::with(server, post("/api/v1/execute", &headers, &body)).until_closed();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no response for {n}: {response}")), response)
}

fn run_all(server: &Server) -> Vec<(u16, String)> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || run(server, n))).collect();
        clients.into_iter().map(|client| client.join().expect("a client does not fail")).collect()
    })
}

#[track_caller]
fn assert_own_output(n: usize, response: &str) {
    assert!(response.contains(&format!("\"stdout\":\"{}\\n\"", n * 7)), "{n}: {response}");
}

#[test]
fn two_hundred_concurrent_clients_get_their_own_reports() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), &[("SANDBOXD_QUOTA_PER_KEY", "1000")]);
    for (n, (status, response)) in run_all(&server).into_iter().enumerate() {
        assert_eq!(status, 200, "{n}: {response}");
        assert_own_output(n, &response);
    }
}

#[test]
fn above_the_limits_requests_are_served_or_get_retry_after() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let limits = [
        ("SANDBOXD_QUOTA_PER_KEY", "1000"),
        ("SANDBOXD_QUEUE_BOUND", "20"),
        ("SANDBOXD_CONCURRENCY", "1"),
        ("SANDBOXD_BURST", "150"),
        ("SANDBOXD_REQUESTS_PER_MINUTE", "1"),
        ("SANDBOXD_LIMIT_LOCAL", "on"),
    ];
    let server = Server::start_with(data.path(), &limits);
    let mut counts: HashMap<u16, usize> = HashMap::new();
    for (n, (status, response)) in run_all(&server).into_iter().enumerate() {
        *counts.entry(status).or_default() += 1;
        match status {
            200 => assert_own_output(n, &response),
            429 | 503 => {
                assert!(response.contains("\r\nretry-after: "), "{response}");
                let is_named =
                    response.contains("\"rate_limited\"") || response.contains("\"queue_full\"");
                assert!(is_named, "{response}");
            }
            _ => panic!("{n}: {response}"),
        }
    }
    let refused = CLIENTS - counts.get(&200).copied().unwrap_or_default();
    assert!((50..=180).contains(&refused), "{counts:?}");
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// Connections above the limit wait in the kernel's backlog until others are closed.
#[test]
fn connections_above_the_limit_wait() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let limits = [("SANDBOXD_MAX_CONNECTIONS", "4"), ("SANDBOXD_QUOTA_PER_KEY", "1000")];
    let server = Server::start_with(data.path(), &limits);
    let mut holders: Vec<_> =
        (0..4).map(|_| RawConnection::with(&server, "GET /api/v1/hea")).collect();
    let counts = || (server.connections(), server.waiting_connections());
    // Poll: the kernel's table can be incomplete while connections change.
    let settle_at =
        |wanted| wait_for(WAIT_TIMEOUT, || (counts() == wanted).then_some(())).is_some();
    assert!(settle_at((4, 0)), "all are accepted: {:?}", counts());
    let get = |more: &str| format!("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let mut waiting = RawConnection::with(&server, get("Connection: close\r\n"));
    // An accepted connection is served, and stays open.
    holders[0].send("lth HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the connection is open");
    assert!(holders[0].until("}").starts_with("HTTP/1.1 200 "));
    assert!(settle_at((5, 1)), "one waits: {:?}", counts());
    holders[0].send(get("Connection: close\r\n")).expect("the connection is open");
    assert!(holders[0].until_closed().starts_with("HTTP/1.1 200 "));
    assert!(waiting.until_closed().starts_with("HTTP/1.1 200 "));
    drop(holders);
    for (n, (status, response)) in run_all(&server).into_iter().enumerate() {
        assert_eq!(status, 200, "{n}: {response}");
        assert_own_output(n, &response);
    }
}

/// Without free descriptors, the server keeps its connections and accepts new ones later.
#[test]
fn running_out_of_descriptors_does_not_end_the_server() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let open = server.limit_descriptors(4);
    // Far more than the limit: the server may have closed some others since, such as those of prepared sandboxes.
    let holders: Vec<_> = (0..64).map(|_| RawConnection::with(&server, "GET /")).collect();
    let failing = wait_for(WAIT_TIMEOUT, || (server.descriptors() >= open + 4).then_some(()));
    assert!(failing.is_some(), "the limit was reached");
    drop(holders);
    assert_eq!(server.get("/api/v1/health").status, 200);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let logged = log.matches("failed to accept a connection").count();
    assert!((1..10).contains(&logged), "logged {logged} times:\n{log}");
}

#[test]
fn a_hundred_executions_share_the_descriptors_of_a_small_server() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let many = [("SANDBOXD_QUOTA_PER_KEY", "1000"), ("SANDBOXD_CONCURRENCY", "100")];
    let server = Server::start_with(data.path(), &many);
    server.limit_descriptors(256_usize.saturating_sub(server.descriptors()));
    let (results, received) = channel();
    thread::scope(|scope| {
        for n in 0..100 {
            let (results, server) = (results.clone(), &server);
            scope.spawn(move || {
                let body = json!({
                    "language": "bash", "code": format!("sleep 0.1; echo {n}"), "memory_limit_mb": 64
                });
                let body = body.to_string();
                let headers = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
                let mut connection = RawConnection::with(server, post("/api/v1/execute", &headers, &body));
                // Fails if the main thread has timed out.
                let _ = results.send((n, connection.until_closed()));
            });
        }
        let mut completed = 0;
        for _ in 0..100 {
            let (n, response) =
                received.recv_timeout(2 * WAIT_TIMEOUT).expect("every request gets a response");
            if response.contains("\"completed\"") {
                assert!(response.contains(&format!("\"stdout\":\"{n}\\n\"")), "{n}: {response}");
                completed += 1;
            } else {
                // Refused, or failed: with an error message either way.
                assert!(
                    response.contains("\"error\"") || response.contains("\"code\""),
                    "{n}: {response}"
                );
            }
        }
        assert!(completed >= 50, "only {completed} completed");
    });
}
