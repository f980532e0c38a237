//! Everybody at once.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::thread;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::server::{SOON, Server};
use crate::wire::{Wire, post};

const CLIENTS: usize = 200;

/// What became of one client: the status of its answer, and the answer itself.
fn run(server: &Server, n: usize) -> (u16, String) {
    let code = format!("print({n} * 7)");
    let body = json!({ "language": "python", "code": code }).to_string();
    let headers = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
    let said = Wire::with(server, post("/api/v1/execute", &headers, &body)).until_closed();
    let status = said.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer for {n}: {said}")), said)
}

fn everybody(server: &Server) -> Vec<(u16, String)> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || run(server, n))).collect();
        clients.into_iter().map(|client| client.join().expect("a client does not fail")).collect()
    })
}

#[track_caller]
fn assert_right(n: usize, said: &str) {
    assert!(said.contains(&format!("\"stdout\":\"{}\\n\"", n * 7)), "{n}: {said}");
}

#[test]
fn two_hundred_clients_at_once_get_each_their_own_answer() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), &[("SANDBOXD_QUOTA_PER_KEY", "1000")]);
    for (n, (status, said)) in everybody(&server).into_iter().enumerate() {
        assert_eq!(status, 200, "{n}: {said}");
        assert_right(n, &said);
    }
}

#[test]
fn over_the_limits_each_is_answered_or_told_when_to_come_again() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
    for (n, (status, said)) in everybody(&server).into_iter().enumerate() {
        *counts.entry(status).or_default() += 1;
        match status {
            200 => assert_right(n, &said),
            429 | 503 => {
                assert!(said.contains("\r\nretry-after: "), "{said}");
                let is_named = said.contains("\"rate_limited\"") || said.contains("\"queue_full\"");
                assert!(is_named, "{said}");
            }
            _ => panic!("{n}: {said}"),
        }
    }
    let refused = CLIENTS - counts.get(&200).copied().unwrap_or_default();
    assert!((50..=180).contains(&refused), "{counts:?}");
    assert_eq!(server.get("/api/v1/health").status, 200);
}

/// Those who find no place wait with the kernel, and are served when others have gone.
#[test]
fn more_connections_than_allowed_wait_for_a_place() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let limits = [("SANDBOXD_MAX_CONNECTIONS", "4"), ("SANDBOXD_QUOTA_PER_KEY", "1000")];
    let server = Server::start_with(data.path(), &limits);
    let mut holders: Vec<_> = (0..4).map(|_| Wire::with(&server, "GET /api/v1/hea")).collect();
    let counts = || (server.connections(), server.connections_that_wait());
    // Asked until it is so: while others come and go, the kernel's table may leave some out.
    let comes_to = |wanted| wait_for(SOON, || (counts() == wanted).then_some(())).is_some();
    assert!(comes_to((4, 0)), "there is a place for each: {:?}", counts());
    let get = |more: &str| format!("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let mut waiting = Wire::with(&server, get("Connection: close\r\n"));
    // One who has a place is served, and keeps it.
    holders[0].send("lth HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is in");
    assert!(holders[0].until("}").starts_with("HTTP/1.1 200 "));
    assert!(comes_to((5, 1)), "one waits: {:?}", counts());
    holders[0].send(get("Connection: close\r\n")).expect("it is in");
    assert!(holders[0].until_closed().starts_with("HTTP/1.1 200 "));
    assert!(waiting.until_closed().starts_with("HTTP/1.1 200 "));
    drop(holders);
    for (n, (status, said)) in everybody(&server).into_iter().enumerate() {
        assert_eq!(status, 200, "{n}: {said}");
        assert_right(n, &said);
    }
}

/// A server that has no descriptor left serves those it has, and everybody else later.
#[test]
fn running_out_of_descriptors_does_not_end_the_server() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let open = server.limit_descriptors(4);
    // Far more than that: some of those it had are closed by now, such as those of what was prepared.
    let holders: Vec<_> = (0..64).map(|_| Wire::with(&server, "GET /")).collect();
    let failing = wait_for(SOON, || (server.descriptors() >= open + 4).then_some(()));
    assert!(failing.is_some(), "the limit was reached");
    drop(holders);
    assert_eq!(server.get("/api/v1/health").status, 200);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let told = log.matches("no connection can be accepted for now").count();
    assert!((1..10).contains(&told), "told {told} times:\n{log}");
}

#[test]
fn a_hundred_executions_share_the_descriptors_of_a_small_server() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let many = [("SANDBOXD_QUOTA_PER_KEY", "1000"), ("SANDBOXD_CONCURRENCY", "100")];
    let server = Server::start_with(data.path(), &many);
    server.limit_descriptors(256_usize.saturating_sub(server.descriptors()));
    let (answers, received) = channel();
    thread::scope(|scope| {
        for n in 0..100 {
            let (answers, server) = (answers.clone(), &server);
            scope.spawn(move || {
                let body = json!({
                    "language": "bash", "code": format!("sleep 0.1; echo {n}"), "memory_limit_mb": 64
                });
                let body = body.to_string();
                let headers = format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
                let mut wire = Wire::with(server, post("/api/v1/execute", &headers, &body));
                // The main thread is gone if it has waited for too long.
                let _ = answers.send((n, wire.until_closed()));
            });
        }
        let mut completed = 0;
        for _ in 0..100 {
            let (n, said) = received.recv_timeout(2 * SOON).expect("nobody waits for ever");
            if said.contains("\"completed\"") {
                assert!(said.contains(&format!("\"stdout\":\"{n}\\n\"")), "{n}: {said}");
                completed += 1;
            } else {
                // Refused, or carried out as far as it went: in words either way.
                assert!(said.contains("\"error\"") || said.contains("\"code\""), "{n}: {said}");
            }
        }
        assert!(completed >= 50, "only {completed} were carried out");
    });
}
