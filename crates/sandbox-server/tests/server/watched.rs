//! Whoever was watching when the server was killed goes on watching after it was started again.

use std::path::Path;

use crate::server::Server;
use crate::watcher::{Again, Watcher, assert_ends_with_report, go_on, last, number, printed};

#[test]
fn what_only_waited_is_watched_over_a_restart_without_loss_or_repetition() {
    for again in [Again::ServerSent, Again::WebSocket] {
        let data = tempfile::tempdir().expect("there is room for temporary files");
        let server = start(data.path());
        let first = server.accept_in("bash", "sleep 60");
        server.wait_until_running(&first);
        let waiting = server.accept_in("bash", "echo one; echo two >&2; echo three");
        let mut watcher = Watcher::open(&server, &waiting, None).expect("it has just begun");
        let mut seen = vec![watcher.next().expect("it is queued")];
        server.kill();
        assert_eq!(watcher.next(), None, "it cannot have begun");

        let server = start(data.path());
        let cancelled = server.send("DELETE", &format!("/api/v1/execute/{first}"), &[], "");
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        seen.extend(go_on(&server, &waiting, last(&seen), again));
        let numbers: Vec<_> = seen.iter().map(number).collect();
        assert_eq!(numbers, (1..=last(&seen)).collect::<Vec<_>>(), "{again:?}: {seen:#?}");
        assert_eq!(printed(&seen, "stdout"), "one\nthree\n", "{again:?}: {seen:#?}");
        assert_eq!(printed(&seen, "stderr"), "two\n", "{again:?}: {seen:#?}");
        assert_ends_with_report(&server, &waiting, &seen);
        // Who comes only now sees the very same.
        assert_eq!(go_on(&server, &waiting, 0, again), seen);
    }
}

/// One at a time, so that it is known which runs.
fn start(data: &Path) -> Server {
    Server::start_with(data, &[("SANDBOXD_CONCURRENCY", "1")])
}
