//! A process killed while it writes loses nothing that it acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use sandbox_core::Status;
use sandbox_store::{SqliteStore, Store};

use crate::conformance::{event, finished, insert, moment, new};

/// Set in the child process of the test below, to the path of the database.
const DATABASE: &str = "SANDBOX_STORE_CRASH_TEST_DATABASE";

const ROUNDS: usize = 5;
const EVENTS: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_loses_nothing_that_was_acknowledged() {
    #[expect(clippy::disallowed_methods, reason = "the test runs itself as a child process")]
    if let Some(database) = std::env::var_os(DATABASE) {
        return write_until_killed(Path::new(&database)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("state.db");
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        // A different number in each round, so that the child is killed at different points.
        acknowledged.extend(run_and_kill(&database, 60 + 17 * round));
        let store = SqliteStore::open(&database).await.unwrap();
        for line in &acknowledged {
            check(&store, line).await;
        }
        check_finished_are_complete(&store).await;
    }
    assert!(acknowledged.len() > ROUNDS * 60);
}

/// Kills a child after it has acknowledged `enough` writes, and returns all that it acknowledged.
fn run_and_kill(database: &Path, enough: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::kill_loses_nothing_that_was_acknowledged", "--nocapture"])
        .env(DATABASE, database)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged: Vec<String> = lines.by_ref().take(enough).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it acknowledged before the signal arrived counts as well.
    acknowledged.extend(lines);
    // Drops the output of the test harness, and a last line that is cut off.
    acknowledged.retain(|line| line.ends_with(';'));
    acknowledged
}

async fn check(store: &SqliteStore, line: &str) {
    let (what, id) = line.trim_end_matches(';').split_once(' ').unwrap();
    let found = store.execution(id).await.unwrap();
    let found = found.unwrap_or_else(|| panic!("{id} was acknowledged and is gone"));
    if what == "finished" {
        assert_eq!(found.status, Status::Completed, "{id}");
    }
}

/// Checks the executions whose result was written but not acknowledged, too.
async fn check_finished_are_complete(store: &SqliteStore) {
    let unfinished: BTreeSet<_> =
        store.unfinished().await.unwrap().into_iter().map(|execution| execution.id).collect();
    for id in crate::conformance::ids(store, crate::conformance::all()).await {
        let expected = if unfinished.contains(&id) { 0 } else { EVENTS };
        let events = store.events(&id, 0, 10).await.unwrap();
        assert_eq!(events.len() as u64, expected, "{id}");
    }
}

/// Runs several tasks at once, so that writes of all kinds are in flight when it is killed.
async fn write_until_killed(database: &Path) {
    let store = &SqliteStore::open(database).await.unwrap();
    let process = std::process::id();
    join_all((0..8).map(|task| async move {
        for number in 0_u64.. {
            let id = &format!("exec_{process}_{task}_{number}");
            insert(store, new(id, 0)).await;
            acknowledge(&format!("inserted {id};"));
            store.mark_running(id, moment(1)).await.unwrap();
            let events = (1..=EVENTS).map(event).collect();
            store.finish(finished(id, Status::Completed, events, 2)).await.unwrap();
            acknowledge(&format!("finished {id};"));
        }
    }))
    .await;
}

fn acknowledge(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}
