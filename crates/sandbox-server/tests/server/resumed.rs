//! Whoever watched a program that was begun again after the server was killed hears of both attempts, in
//! order, and of the end.

use std::path::Path;

use serde_json::Value;

use crate::server::Server;
use crate::watcher::{Again, Watcher, assert_ends_with_report, go_on, last, number, printed};

/// Prints so much, slowly enough to be watched, and then has something else to do.
const TALKATIVE: &str =
    "for line in 1 2 3 4 5 6 7 8 9 10; do echo $line; sleep 0.03; done; sleep 2";
const PRINTED: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn what_was_running_is_watched_to_its_end_over_a_restart() {
    for again in [Again::ServerSent, Again::WebSocket] {
        let data = tempfile::tempdir().expect("there is room for temporary files");
        let (server, id, mut seen) = killed_while_watched(data.path());
        seen.extend(go_on(&server, &id, last(&seen), again));
        assert_rising(&seen);
        assert_ends_with_report(&server, &id, &seen);
    }
}

/// The second attempt has fewer events than were seen of the first, since nobody watches it.
#[test]
fn who_comes_again_after_the_end_still_hears_of_it() {
    for again in [Again::ServerSent, Again::WebSocket] {
        let data = tempfile::tempdir().expect("there is room for temporary files");
        let (server, id, mut seen) = killed_while_watched(data.path());
        server.final_report(&id);
        let rest = go_on(&server, &id, last(&seen), again);
        assert_eq!(printed(&rest, "stdout"), PRINTED, "{again:?}: {rest:#?}");
        seen.extend(rest);
        assert_rising(&seen);
        assert_ends_with_report(&server, &id, &seen);
    }
}

/// Kills a server while a program runs whose output was read as it came, and starts it again. The
/// events are those that were seen.
fn killed_while_watched(data: &Path) -> (Server, String, Vec<Value>) {
    let server = Server::start(data);
    let id = server.accept_in("bash", TALKATIVE);
    let mut watcher = Watcher::open(&server, &id, None).expect("it has just begun");
    let seen =
        watcher.until(|event| event["data"].as_str().is_some_and(|data| data.ends_with("10\n")));
    assert_eq!(printed(&seen, "stdout"), PRINTED);
    server.kill();
    (Server::start(data), id, seen)
}

fn assert_rising(events: &[Value]) {
    let numbers: Vec<_> = events.iter().map(number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{events:#?}");
}
