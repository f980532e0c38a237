//! A server that is killed loses no accepted execution.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbox_tests::wait::{wait_for, wait_until_empty};
use serde_json::{Value, json};

use crate::event_stream::EventStream;
use crate::http::try_send;
use crate::server_process::{Residue, Server, WAIT_TIMEOUT};

const ROUNDS: usize = 20;
const EXECUTIONS: usize = 100;
/// More than the cores: most programs sleep.
const CONCURRENCY: (&str, &str) = ("SANDBOXD_CONCURRENCY", "8");

/// Each round kills the server at another moment: while it accepts requests, or later, when some executions have
/// finished, some run and some are queued.
#[test]
fn every_accepted_execution_ends_however_often_the_server_is_killed() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let mut server = Server::start_with(data.path(), &[CONCURRENCY]);
    for round in 0..ROUNDS {
        let ids = if round % 2 == 0 {
            kill_while_accepting(server, 5 * round + 5)
        } else {
            kill_while_working(server, 2 * round)
        };
        server = Server::start_with(data.path(), &[CONCURRENCY]);
        for (n, id) in &ids {
            let report = server.final_report(id);
            assert_eq!(report["status"], "completed", "round {round}: {report}");
            assert_eq!(report["stdout"], format!("{n}\n"), "round {round}: {report}");
        }
        // Executions whose clients did not receive the response finish too.
        let unfinished = wait_until_empty(WAIT_TIMEOUT, || unfinished(&server));
        assert!(unfinished.is_empty(), "round {round}: {unfinished:#?}");
    }
}

/// Kills a server after this many responses, while it receives more requests. Returns the ids that clients received.
fn kill_while_accepting(server: Server, answered: usize) -> Vec<(usize, String)> {
    let count = AtomicUsize::new(0);
    let address = server.address;
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut ids = Vec::new();
            for n in 0..EXECUTIONS {
                let body = program(n).to_string();
                let path = "/api/v1/execute?wait=false";
                let Some(response) = try_send(address, "POST", path, &[], &body) else {
                    break;
                };
                assert_eq!(response.status, 202, "{response:?}");
                let id = response.json()["id"].as_str().expect("an id is text").to_owned();
                ids.push((n, id));
                count.fetch_add(1, Ordering::SeqCst);
            }
            ids
        });
        let enough = || (count.load(Ordering::SeqCst) >= answered).then_some(());
        assert!(wait_for(WAIT_TIMEOUT, enough).is_some(), "the server accepts nothing");
        kill(server);
        let ids = client.join().expect("the client fails only with the test");
        assert!(ids.len() >= answered, "it was killed too early");
        ids
    })
}

/// Kills a server after this many executions have finished.
fn kill_while_working(server: Server, finished: usize) -> Vec<(usize, String)> {
    let ids: Vec<_> = (0..EXECUTIONS)
        .map(|n| {
            let response =
                server.send("POST", "/api/v1/execute?wait=false", &[], &program(n).to_string());
            assert_eq!(response.status, 202, "{response:?}");
            (n, response.json()["id"].as_str().expect("an id is text").to_owned())
        })
        .collect();
    server.final_report(&ids[finished].1);
    assert!(!unfinished(&server).is_empty(), "it was killed too late");
    kill(server);
    ids
}

/// Kills the server, and asserts that none of its processes survives.
fn kill(server: Server) {
    let residue = Residue::of(&server);
    server.kill();
    residue.assert_gone();
}

/// Programs of different durations, most of them fast to start. The last one is long, so that it has not finished when
/// all are accepted, even on a fast machine.
fn program(n: usize) -> Value {
    let pause = if n % 25 == 24 { 500 } else { 30 + n * 7 % 90 };
    if n.is_multiple_of(10) {
        let code = format!("import time; time.sleep({pause} / 1000); print({n})");
        return json!({ "language": "python", "code": code });
    }
    json!({ "language": "bash", "code": format!("sleep 0.{pause:03}; echo {n}") })
}

/// The unfinished executions.
fn unfinished(server: &Server) -> Vec<Value> {
    let list = |status: &str| {
        let page = server.get(&format!("/api/v1/executions?limit=500&status={status}")).json();
        page["executions"].as_array().cloned().unwrap_or_else(|| panic!("{page}"))
    };
    [list("running"), list("queued")].concat()
}

/// A program that crashes the server must not run forever.
#[test]
fn an_execution_is_not_retried_after_two_crashes() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let id = server.accept_in("bash", "echo begun; sleep 9");
    kill_when_started(server, &id);
    let server = Server::start(data.path());
    kill_when_started(server, &id);
    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["status"], "error", "{report}");
}

fn kill_when_started(server: Server, id: &str) {
    let mut stream = EventStream::open(&server, id, None).expect("it has not finished");
    stream.until(|event| event["type"] == "stdout");
    server.kill();
}

/// Otherwise a program could crash the server before the attempt is counted. While the database is locked, an execution
/// does not start.
#[test]
fn a_program_does_not_start_before_its_attempt_is_saved() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), &[("SANDBOXD_CONCURRENCY", "1")]);
    // On a busy machine, the first may finish before the lock is held: retry with a longer one.
    let (second, lock) = [1, 4, 9]
        .into_iter()
        .find_map(|seconds| {
            let first = server.accept_in("bash", &format!("sleep {seconds}"));
            server.wait_until_running(&first);
            let second = server.accept_in("bash", "echo begun");
            let lock = WriteLock::take(&data.path().join("sandboxd.db"));
            let is_queued =
                server.get(&format!("/api/v1/execute/{second}")).json()["status"] == "queued";
            is_queued.then_some((second, lock))
        })
        .expect("the lock is held before the first is over");
    server.wait_until_running(&second);
    let mut stream =
        EventStream::open(&server, &second, Some(QUEUED)).expect("it has not finished");
    let event = stream.next_within(WAIT_TIMEOUT).expect("the stage event arrives");
    assert_eq!(event["type"], "stage");
    // A started program would have printed by then.
    let more = stream.next_within(Duration::from_millis(500));
    assert_eq!(more, None, "the program must not have started");
    drop(lock);
    assert_eq!(server.final_report(&second)["stdout"], "begun\n");
}

/// The sequence number of the first event, `queued`.
const QUEUED: u64 = 1;

/// Blocks all writes to a database while it is held.
struct WriteLock(Child);

impl WriteLock {
    fn take(database: &Path) -> Self {
        let code = "import sqlite3, sys\n\
                    connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                    connection.execute('BEGIN IMMEDIATE')\n\
                    print('held', flush=True)\n\
                    sys.stdin.read()\n";
        let mut holder = Command::new("/usr/bin/python3")
            .args(["-c", code])
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python can be started");
        let mut ready = [0; 4];
        let stdout = holder.stdout.as_mut().expect("its output is a pipe");
        stdout.read_exact(&mut ready).expect("it gets the lock");
        Self(holder)
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
