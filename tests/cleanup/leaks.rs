//! What a sandbox holds does not grow with what it has executed.

use std::sync::Barrier;
use std::time::Duration;

use sandbox::{ByteSize, Limits, Request, Sandbox, Status};
use sandbox_tests::process::{adopt_orphans, wait_for_no_descendants};
use sandbox_tests::residue::{Residue, cgroups_of, resident_kib};

fn bash(script: &str) -> Request {
    let limits = Limits::run().with_wall_time(Duration::from_mins(2));
    let limits = limits.expect("the limit is a possible one");
    let request = Request::builder("bash").code(script).limits(limits);
    request.build().expect("the request is a valid one")
}

fn run(sandbox: &Sandbox, script: &str, status: Status) {
    let report = sandbox.execute(bash(script)).expect("the request is taken");
    assert_eq!(report.status, status, "{:?}", report.error);
}

/// A request of each sort that could leave something of its own behind.
fn run_each_sort(sandbox: &Sandbox) {
    run(sandbox, "true", Status::Completed);
    run(sandbox, "(setsid sleep 60 &); echo x > /tmp/x", Status::Completed);
    run(sandbox, "kill -9 $$", Status::RuntimeError);
    run(sandbox, "yes", Status::OutputLimit);
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let volume = format!("{}:/data:rw", place.path().display());
    let limits = Limits::run().with_wall_time(Duration::from_millis(100));
    let request = Request::builder("bash")
        .code("cat in > /data/out; sleep 60")
        .file("in", "x")
        .stdin("given")
        .volume(volume.parse().expect("the volume is a valid one"))
        .collect("**")
        .limits(limits.expect("the limit is a possible one"));
    let request = request.build().expect("the request is a valid one");
    let report = sandbox.execute(request).expect("the request is taken");
    assert_eq!(report.status, Status::Timeout);
    let execution = sandbox.start(bash("sleep 60")).expect("the request is taken");
    drop(execution);
}

#[test]
fn a_thousand_executions_in_a_row_leak_nothing() {
    let sandbox = Sandbox::new().expect("a sandbox can be started");
    for _ in 0..20 {
        run(&sandbox, "true", Status::Completed);
    }
    run_each_sort(&sandbox);
    let before = Residue::count_at_rest();
    let memory = resident_kib("VmRSS");
    for number in 0..1000 {
        if number % 100 == 0 {
            run_each_sort(&sandbox);
        }
        run(&sandbox, "true", Status::Completed);
    }
    before.assert_returns("a thousand executions");
    let grown = resident_kib("VmRSS").saturating_sub(memory);
    assert!(grown < 16 << 10, "memory grew by {grown} KiB");
}

#[test]
fn sixty_four_executions_at_once_leak_nothing() {
    const MANY: usize = 64;
    let sandbox = Sandbox::new().expect("a sandbox can be started");
    let round = || {
        let start = Barrier::new(MANY);
        std::thread::scope(|scope| {
            for number in 0..MANY {
                let (start, sandbox) = (&start, &sandbox);
                scope.spawn(move || {
                    start.wait();
                    let script = format!("(setsid sleep 60 &); sleep 0.1; echo {number}");
                    let report = sandbox.execute(bash(&script)).expect("the request is taken");
                    assert_eq!(report.stdout, format!("{number}\n"), "{:?}", report.error);
                });
            }
        });
    };
    round();
    let before = Residue::count_at_rest();
    for _ in 0..4 {
        round();
    }
    before.assert_returns("sixty-four executions at once");
}

#[test]
fn a_sandbox_that_is_dropped_leaks_nothing() {
    adopt_orphans();
    let before = Residue::count();
    for _ in 0..10 {
        let sandbox = Sandbox::new().expect("a sandbox can be started");
        run_each_sort(&sandbox);
    }
    let left = wait_for_no_descendants(Duration::from_secs(30));
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new());
    before.assert_returns("ten sandboxes");
}

/// Dropped at once: its helpers are still busy making slots ready.
#[test]
fn a_sandbox_that_is_never_used_leaks_nothing() {
    adopt_orphans();
    let before = Residue::count();
    for _ in 0..20 {
        drop(Sandbox::new().expect("a sandbox can be started"));
    }
    let left = wait_for_no_descendants(Duration::from_secs(30));
    assert!(left.is_empty(), "{left:?}");
    before.assert_returns("twenty sandboxes");
}

#[test]
fn a_program_that_prints_without_end_does_not_leak_into_our_memory() {
    let sandbox = Sandbox::new().expect("a sandbox can be started");
    run(&sandbox, "yes", Status::OutputLimit);
    let before = resident_kib("VmHWM");
    for script in ["yes", "yes >&2", "head -c 1G /dev/zero", "cat /dev/zero & cat /dev/zero >&2"] {
        let limits = Limits::run().with_output(ByteSize::kib(64));
        let request = Request::builder("bash")
            .code(script)
            .limits(limits.expect("the limit is a possible one"));
        let request = request.build().expect("the request is a valid one");
        let report = sandbox.execute(request).expect("the request is taken");
        assert_eq!(report.status, Status::OutputLimit);
    }
    let grown = resident_kib("VmHWM") - before;
    assert!(grown < 8 << 10, "memory grew by {grown} KiB");
}
