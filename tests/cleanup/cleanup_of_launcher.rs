//! A launcher that is killed or stopped under its supervisor: executions end as our failure, not the program's, and
//! nothing of them is left.

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use sandbox::{EventKind, Request, Sandbox, Status};
use sandbox_tests::process::{Process, adopt_orphans, descendants, wait_for_no_descendants};
use sandbox_tests::residue::cgroups_of;
use sandbox_tests::wait::wait_until_empty;

const SOON: Duration = Duration::from_secs(30);

fn bash(script: &str) -> Request {
    let request = Request::builder("bash").code(script).build();
    request.expect("the request is a valid one")
}

fn launcher() -> Process {
    let own = i32::try_from(std::process::id()).expect("process ids are small");
    let mut children = descendants().into_iter().filter(|process| process.parent == own);
    children.next().expect("a sandbox has a launcher")
}

#[test]
fn cleanup_after_the_launcher_is_killed() {
    adopt_orphans();
    let sandbox = Sandbox::new().expect("a sandbox can be started");
    let mut execution = sandbox
        .start(bash("echo up; (setsid sleep 60 &); while :; do :; done"))
        .expect("the request is taken");
    let spoke = execution.events().find(|event| matches!(event.kind, EventKind::Output(..)));
    assert!(spoke.is_some());
    launcher().kill();
    let report = execution.wait().expect("the request was taken");
    assert_eq!(report.status, Status::Error, "{:?}", report.error);
    assert!(report.error.is_some());
    let programs = wait_until_empty(SOON, || {
        let all = descendants().into_iter();
        all.filter(|process| ["bash", "sleep"].contains(&process.name.as_str())).collect()
    });
    assert!(programs.is_empty(), "{programs:?}");

    // The next one is carried out or refused in words; it neither hangs nor blames the program.
    let begun = Instant::now();
    let report = sandbox.execute(bash("echo fine")).expect("the request is taken");
    assert!(begun.elapsed() < SOON);
    match report.status {
        Status::Completed => assert_eq!(report.stdout, "fine\n"),
        Status::Error => {
            let error = report.error.unwrap_or_default();
            assert!(error.contains("launcher"), "'{error}' does not say what is missing");
        }
        other => panic!("{other}: {:?}", report.error),
    }
    drop(sandbox);
    let left = wait_for_no_descendants(SOON);
    assert!(left.is_empty(), "{left:?}");
    let left = wait_until_empty(SOON, || cgroups_of(std::process::id()));
    assert!(left.is_empty(), "{left:?}");
}

/// Longer than any wait for a launcher.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

#[test]
fn cleanup_after_a_launcher_that_does_not_answer() {
    adopt_orphans();
    // None is prepared ahead: each execution needs the launcher.
    let sandbox = Sandbox::builder().spare_slots(0).warm(false).build();
    let sandbox = sandbox.expect("a sandbox can be started");
    let stopped = launcher();
    kill_process(stopped.pid(), Signal::STOP).expect("it is our child");
    let begun = Instant::now();
    let report = sandbox.execute(bash("echo fine")).expect("the request is taken");
    assert!(begun.elapsed() < TEST_TIMEOUT);
    assert_eq!(report.status, Status::Error, "{:?}", report.error);
    let error = report.error.unwrap_or_default();
    assert!(error.contains("launcher"), "'{error}' does not say who is waited for");

    // It was not given up: others may run in what it made before.
    kill_process(stopped.pid(), Signal::CONT).expect("it is our child");
    let report = sandbox.execute(bash("echo fine")).expect("the request is taken");
    assert_eq!(report.stdout, "fine\n", "{:?}", report.error);
    assert_eq!(launcher().id, stopped.id);

    // One that does not go is made to.
    kill_process(stopped.pid(), Signal::STOP).expect("it is our child");
    let begun = Instant::now();
    drop(sandbox);
    assert!(begun.elapsed() < TEST_TIMEOUT);
    let left = wait_for_no_descendants(SOON);
    assert!(left.is_empty(), "{left:?}");
    let left = wait_until_empty(SOON, || cgroups_of(std::process::id()));
    assert!(left.is_empty(), "{left:?}");
}
