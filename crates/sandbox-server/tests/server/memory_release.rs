//! After a peak, the server releases memory and truncates the write-ahead log of the database.

use std::path::Path;

use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::server_process::{Server, WAIT_TIMEOUT};

/// Concurrent clients, requests of each, and bytes of output in each report, which has it twice.
const CLIENTS: u64 = 4;
const REQUESTS: u64 = 25;
const OUTPUT: u64 = 1_000_000;

/// A log is truncated if it is not larger than this.
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
                    let response = server.send("POST", "/api/v1/execute", &[], &body);
                    assert_eq!(response.status, 200, "{response:?}");
                }
            });
        }
    });
}

#[test]
fn an_idle_server_releases_memory_and_truncates_the_log() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    run_many(&server);
    let sent = CLIENTS * REQUESTS * OUTPUT;
    // A part of it is in memory at any time; afterwards nothing.
    let released =
        wait_for(3 * WAIT_TIMEOUT, || (server.anonymous_memory() < sent / 2).then_some(()));
    assert!(released.is_some(), "{} of {sent} bytes are kept", server.anonymous_memory());
    let truncated =
        wait_for(3 * WAIT_TIMEOUT, || (log_size(data.path()) <= SMALL_LOG).then_some(()));
    assert!(truncated.is_some(), "{} bytes of log are kept", log_size(data.path()));
    assert_eq!(server.get("/api/v1/executions").status, 200, "it still works");
}

#[test]
fn a_clean_shutdown_truncates_the_log() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    run_many(&server);
    assert!(log_size(data.path()) > SMALL_LOG, "the log is too small for this test");
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log_size(data.path()) <= SMALL_LOG, "{} bytes are left", log_size(data.path()));
}
