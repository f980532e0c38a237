//! A process that is killed in the middle of writing has lost nothing that it acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use sandbox_core::Status;
use sandbox_store::{SqliteStore, Store};

use crate::conformance::{ending, event, insert, moment, new};

/// Tells the test below that it is the child, and where the database is.
const DATABASE: &str = "SANDBOX_STORE_CRASH_TEST_DATABASE";

const ROUNDS: usize = 5;
const EVENTS: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_loses_nothing_that_was_acknowledged() {
    #[expect(clippy::disallowed_methods, reason = "it is how the test starts itself as a child")]
    if let Some(database) = std::env::var_os(DATABASE) {
        return write_until_killed(Path::new(&database)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("state.db");
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        // Not the same number each time, so that it is killed in different places.
        acknowledged.extend(run_and_kill(&database, 60 + 17 * round));
        let store = SqliteStore::open(&database).await.unwrap();
        for line in &acknowledged {
            check(&store, line).await;
        }
        every_end_is_whole(&store).await;
    }
    assert!(acknowledged.len() > ROUNDS * 60);
}

/// What a child acknowledged until it was killed, after it acknowledged so much.
fn run_and_kill(database: &Path, enough: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::kill_loses_nothing_that_was_acknowledged", "--nocapture"])
        .env(DATABASE, database)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told: Vec<String> = lines.by_ref().take(enough).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said between our decision and its death counts as well.
    told.extend(lines);
    // The test harness has its own words, and the last line may be cut off.
    told.retain(|line| line.ends_with(';'));
    told
}

async fn check(store: &SqliteStore, line: &str) {
    let (what, id) = line.trim_end_matches(';').split_once(' ').unwrap();
    let found = store.execution(id).await.unwrap();
    let found = found.unwrap_or_else(|| panic!("{id} was acknowledged and is gone"));
    if what == "finished" {
        assert_eq!(found.status, Status::Completed, "{id}");
    }
}

/// Also of those whose end was written and not yet acknowledged.
async fn every_end_is_whole(store: &SqliteStore) {
    let unfinished: BTreeSet<_> =
        store.unfinished().await.unwrap().into_iter().map(|execution| execution.id).collect();
    for id in crate::conformance::ids(store, crate::conformance::all()).await {
        let expected = if unfinished.contains(&id) { 0 } else { EVENTS };
        let events = store.events(&id, 0, 10).await.unwrap();
        assert_eq!(events.len() as u64, expected, "{id}");
    }
}

/// Several at once, so that it is killed with writes of all kinds under way.
async fn write_until_killed(database: &Path) {
    let store = &SqliteStore::open(database).await.unwrap();
    let process = std::process::id();
    join_all((0..8).map(|task| async move {
        for number in 0_u64.. {
            let id = &format!("exec_{process}_{task}_{number}");
            insert(store, new(id, 0)).await;
            say(&format!("inserted {id};"));
            store.begin(id, moment(1)).await.unwrap();
            let events = (1..=EVENTS).map(event).collect();
            store.finish(ending(id, Status::Completed, events, 2)).await.unwrap();
            say(&format!("finished {id};"));
        }
    }))
    .await;
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}
