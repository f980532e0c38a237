//! A client that reconnects after a crash of the server resumes its event stream. It receives the events of both attempts
//! of an execution, in order, and the report.

use std::path::Path;

use serde_json::Value;

use crate::event_stream::{
    EventStream, Protocol, assert_ends_with_report, last, number, printed, resume,
};
use crate::server_process::Server;

/// Prints lines slowly, and then runs for two more seconds.
const SLOW_PRINTER: &str =
    "for line in 1 2 3 4 5 6 7 8 9 10; do echo $line; sleep 0.03; done; sleep 2";
const PRINTED: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn a_stream_of_a_running_execution_resumes_after_a_crash() {
    for protocol in [Protocol::ServerSent, Protocol::WebSocket] {
        let data = tempfile::tempdir().expect("a temporary directory can be created");
        let (server, id, mut seen) = crash_while_streaming(data.path());
        seen.extend(resume(&server, &id, last(&seen), protocol));
        assert_ascending(&seen);
        assert_ends_with_report(&server, &id, &seen);
    }
}

/// The second attempt has fewer events than the client has received of the first: without a client, output is not split.
#[test]
fn a_stream_resumes_after_the_end_of_the_execution() {
    for protocol in [Protocol::ServerSent, Protocol::WebSocket] {
        let data = tempfile::tempdir().expect("a temporary directory can be created");
        let (server, id, mut seen) = crash_while_streaming(data.path());
        server.final_report(&id);
        let rest = resume(&server, &id, last(&seen), protocol);
        assert_eq!(printed(&rest, "stdout"), PRINTED, "{protocol:?}: {rest:#?}");
        seen.extend(rest);
        assert_ascending(&seen);
        assert_ends_with_report(&server, &id, &seen);
    }
}

/// Kills a server while a client streams a running execution, and starts it protocol. Returns the received events.
fn crash_while_streaming(data: &Path) -> (Server, String, Vec<Value>) {
    let server = Server::start(data);
    let id = server.accept_in("bash", SLOW_PRINTER);
    let mut stream = EventStream::open(&server, &id, None).expect("the stream is open");
    let seen =
        stream.until(|event| event["data"].as_str().is_some_and(|data| data.ends_with("10\n")));
    assert_eq!(printed(&seen, "stdout"), PRINTED);
    server.kill();
    (Server::start(data), id, seen)
}

fn assert_ascending(events: &[Value]) {
    let numbers: Vec<_> = events.iter().map(number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{events:#?}");
}

#[test]
fn a_stream_of_a_queued_execution_resumes_without_loss_or_duplicates() {
    for protocol in [Protocol::ServerSent, Protocol::WebSocket] {
        let data = tempfile::tempdir().expect("a temporary directory can be created");
        let server = start(data.path());
        let first = server.accept_in("bash", "sleep 60");
        server.wait_until_running(&first);
        let waiting = server.accept_in("bash", "echo one; echo two >&2; echo three");
        let mut stream = EventStream::open(&server, &waiting, None).expect("the stream is open");
        let mut seen = vec![stream.next().expect("the first event is queued")];
        server.kill();
        assert_eq!(stream.next(), None, "the queued execution has no other event");

        let server = start(data.path());
        let cancelled = server.send("DELETE", &format!("/api/v1/execute/{first}"), &[], "");
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        seen.extend(resume(&server, &waiting, last(&seen), protocol));
        let numbers: Vec<_> = seen.iter().map(number).collect();
        assert_eq!(numbers, (1..=last(&seen)).collect::<Vec<_>>(), "{protocol:?}: {seen:#?}");
        assert_eq!(printed(&seen, "stdout"), "one\nthree\n", "{protocol:?}: {seen:#?}");
        assert_eq!(printed(&seen, "stderr"), "two\n", "{protocol:?}: {seen:#?}");
        assert_ends_with_report(&server, &waiting, &seen);
        // A new client receives the same events.
        assert_eq!(resume(&server, &waiting, 0, protocol), seen);
    }
}

/// Starts a server that runs one execution at a time.
fn start(data: &Path) -> Server {
    Server::start_with(data, &[("SANDBOXD_CONCURRENCY", "1")])
}
