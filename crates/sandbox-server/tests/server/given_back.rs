//! What was large for a while is given back: memory, and the log of the database.

use std::path::Path;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::server::{SOON, Server};

/// Clients at once, requests of each, and what each report has of the program's output, in bytes: twice.
const CLIENTS: u64 = 4;
const REQUESTS: u64 = 25;
const OUTPUT: u64 = 1_000_000;

/// A log of no more than this is one that was cut.
const SMALL_LOG: u64 = 64 << 10;

fn log_size(data: &Path) -> u64 {
    std::fs::metadata(data.join("sandboxd.db-wal")).map_or(0, |file| file.len())
}

fn run_many(server: &Server) {
    let code = format!("head -c {OUTPUT} /dev/zero | tr '\\0' x");
    let body = json!({ "language": "bash", "code": code, "output_limit_kb": 1024 }).to_string();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for _ in 0..REQUESTS {
                    let answer = server.send("POST", "/api/v1/execute", &[], &body);
                    assert_eq!(answer.status, 200, "{answer:?}");
                }
            });
        }
    });
}

#[test]
fn memory_and_log_shrink_when_there_is_nothing_to_do() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    run_many(&server);
    let sent = CLIENTS * REQUESTS * OUTPUT;
    // At most a third of it waits at any time, in a few copies; afterwards nothing.
    let shrunk = wait_for(3 * SOON, || (server.own_memory() < sent / 2).then_some(()));
    assert!(shrunk.is_some(), "{} of {sent} bytes are kept", server.own_memory());
    let cut = wait_for(3 * SOON, || (log_size(data.path()) <= SMALL_LOG).then_some(()));
    assert!(cut.is_some(), "{} bytes of log are kept", log_size(data.path()));
    assert_eq!(server.get("/api/v1/executions").status, 200, "it goes on");
}

#[test]
fn a_server_that_stops_leaves_no_log() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    run_many(&server);
    assert!(log_size(data.path()) > SMALL_LOG, "there was nothing to cut");
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log_size(data.path()) <= SMALL_LOG, "{} bytes are left", log_size(data.path()));
}
