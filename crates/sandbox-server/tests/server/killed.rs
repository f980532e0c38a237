//! A server that is killed loses nothing that it had accepted.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbox_tests::wait::{wait_for, wait_until_empty};
use serde_json::{Value, json};

use crate::http::try_send;
use crate::server::{Belongings, SOON, Server};
use crate::watcher::Watcher;

const ROUNDS: usize = 20;
const EXECUTIONS: usize = 100;
/// Some more at once than there are cores: most of them sleep.
const CONCURRENCY: (&str, &str) = ("SANDBOXD_CONCURRENCY", "8");

/// Each round kills the server at another moment: while it accepts, or when it has accepted everything
/// and some are over, some run and some wait.
#[test]
fn every_accepted_execution_ends_however_often_the_server_is_killed() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let mut server = Server::start_with(data.path(), &[CONCURRENCY]);
    for round in 0..ROUNDS {
        let ids = if round % 2 == 0 {
            killed_while_accepting(server, 5 * round + 5)
        } else {
            killed_while_working(server, 2 * round)
        };
        server = Server::start_with(data.path(), &[CONCURRENCY]);
        for (n, id) in &ids {
            let report = server.final_report(id);
            assert_eq!(report["status"], "completed", "round {round}: {report}");
            assert_eq!(report["stdout"], format!("{n}\n"), "round {round}: {report}");
        }
        // Those that were accepted and whose clients never heard of it end too.
        let unfinished = wait_until_empty(SOON, || unfinished(&server));
        assert!(unfinished.is_empty(), "round {round}: {unfinished:#?}");
    }
}

/// Kills a server that has answered so many requests and gets more. Gives the ids that clients heard of.
fn killed_while_accepting(server: Server, answered: usize) -> Vec<(usize, String)> {
    let count = AtomicUsize::new(0);
    let address = server.address;
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut ids = Vec::new();
            for n in 0..EXECUTIONS {
                let body = program(n).to_string();
                let path = "/api/v1/execute?wait=false";
                let Some(answer) = try_send(address, "POST", path, &[], &body) else {
                    break;
                };
                assert_eq!(answer.status, 202, "{answer:?}");
                let id = answer.json()["id"].as_str().expect("an id is text").to_owned();
                ids.push((n, id));
                count.fetch_add(1, Ordering::SeqCst);
            }
            ids
        });
        let enough = || (count.load(Ordering::SeqCst) >= answered).then_some(());
        assert!(wait_for(SOON, enough).is_some(), "the server accepts nothing");
        kill(server);
        let ids = client.join().expect("the client fails only with the test");
        assert!(ids.len() >= answered, "it was killed too early");
        ids
    })
}

/// Kills a server that has so many of its executions behind it.
fn killed_while_working(server: Server, finished: usize) -> Vec<(usize, String)> {
    let ids: Vec<_> = (0..EXECUTIONS)
        .map(|n| {
            let answer =
                server.send("POST", "/api/v1/execute?wait=false", &[], &program(n).to_string());
            assert_eq!(answer.status, 202, "{answer:?}");
            (n, answer.json()["id"].as_str().expect("an id is text").to_owned())
        })
        .collect();
    server.final_report(&ids[finished].1);
    assert!(!unfinished(&server).is_empty(), "it was killed too late");
    kill(server);
    ids
}

/// Kills it, and makes sure that nothing of it goes on.
fn kill(server: Server) {
    let belongings = Belongings::of(&server);
    server.kill();
    belongings.assert_gone();
}

/// Programs of different lengths, most of them quick to start. The last one takes long, so that it is not
/// over when all are accepted, however quick the machine is.
fn program(n: usize) -> Value {
    let pause = if n % 25 == 24 { 500 } else { 30 + n * 7 % 90 };
    if n.is_multiple_of(10) {
        let code = format!("import time; time.sleep({pause} / 1000); print({n})");
        return json!({ "language": "python", "code": code });
    }
    json!({ "language": "bash", "code": format!("sleep 0.{pause:03}; echo {n}") })
}

/// What the history does not know the end of.
fn unfinished(server: &Server) -> Vec<Value> {
    let list = |status: &str| {
        let page = server.get(&format!("/api/v1/executions?limit=500&status={status}")).json();
        page["executions"].as_array().cloned().unwrap_or_else(|| panic!("{page}"))
    };
    [list("running"), list("queued")].concat()
}

/// What kills its server again and again must not do so for ever.
#[test]
fn an_execution_that_was_interrupted_twice_is_not_begun_again() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let id = server.accept_in("bash", "echo begun; sleep 9");
    kill_when_begun(server, &id);
    let server = Server::start(data.path());
    kill_when_begun(server, &id);
    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["status"], "error", "{report}");
}

fn kill_when_begun(server: Server, id: &str) {
    let mut watcher = Watcher::open(&server, id, None).expect("it is not over");
    watcher.until(|event| event["type"] == "stdout");
    server.kill();
}

/// Otherwise a program could end its server before anybody knows that it was begun. While nothing can
/// be written, an execution whose turn has come has to wait.
#[test]
fn nothing_of_a_program_is_told_before_its_start_is_remembered() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), &[("SANDBOXD_CONCURRENCY", "1")]);
    // On a busy machine the first may be over before the lock is held; then another has to take longer.
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
    let mut watcher = Watcher::open(&server, &second, Some(QUEUED)).expect("it is not over");
    let begins = watcher.next_within(SOON).expect("it is told that it begins");
    assert_eq!(begins["type"], "stage");
    // No program that had been started would be silent for so long.
    let more = watcher.next_within(Duration::from_millis(500));
    assert_eq!(more, None, "nothing of what it does is told");
    drop(lock);
    assert_eq!(server.final_report(&second)["stdout"], "begun\n");
}

/// The number of the event that says that an execution was accepted.
const QUEUED: u64 = 1;

/// As long as it is held, nobody else can write to a database.
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
        let mut said = [0; 4];
        let stdout = holder.stdout.as_mut().expect("its output is a pipe");
        stdout.read_exact(&mut said).expect("it gets the lock");
        Self(holder)
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
