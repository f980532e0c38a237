//! Programs that keep their supervisor busy: it does bounded work for them, and their neighbours do not
//! notice.

use std::time::Duration;

use sandbox::{CancelToken, Event, EventKind, Limits, Sandbox, Status};
use sandbox_tests::backend::{Feature, execute, with_each_backend, with_each_backend_that_has};

use crate::table::{bash, c, python};

/// Writes that cannot succeed, as fast as they can be tried, to both streams in turn.
const WRITE_FLOOD: &str = "import os, fcntl\n\
    for stream in (1, 2):\n    \
        fcntl.fcntl(stream, fcntl.F_SETFL, fcntl.fcntl(stream, fcntl.F_GETFL) | os.O_NONBLOCK)\n\
    os.write(1, b'begun\\n')\n\
    while True:\n    \
        for stream in (1, 2):\n        \
            try: os.write(stream, b'x')\n        \
            except BlockingIOError: pass\n";

/// Calls that are denied, one after the other.
const DENIED_FLOOD: &str = "#include <sys/ptrace.h>\n\
    int main(void) { for (int i = 0; i < 2500; i++) ptrace(PTRACE_TRACEME, 0, 0, 0); }";

/// Calls that are answered at once before it goes more slowly.
const AT_ONCE: u64 = 1000;

fn seconds(count: u64) -> Limits {
    Limits::run().with_wall_time(Duration::from_secs(count)).expect("seconds are a limit")
}

#[test]
fn denied_calls_without_end_are_answered_ever_more_slowly() {
    with_each_backend_that_has(&[Feature::NamedDenials], |sandbox| {
        let request = c(DENIED_FLOOD).limits(seconds(60));
        let Some(report) = execute("denied_flood", sandbox, request) else { return };
        assert_eq!(report.status, Status::Completed, "{:?}", report.error);
        let [violation] = report.violations.as_slice() else { panic!("{:?}", report.violations) };
        assert_eq!((violation.syscall.as_str(), violation.count), ("ptrace", 2500));
        // At most one a millisecond: what our own CPU time is bounded by.
        let least = Duration::from_millis(violation.count - AT_ONCE - 1);
        let took = report.stages.last().expect("it ran").usage.wall_time;
        assert!(took >= least, "{took:?}");
    });
}

/// A program prints a line and waits to be cancelled by its observer. If the line is lost, the program times out.
fn assert_heard_while_it_runs(sandbox: &Sandbox) {
    let cancel = CancelToken::new();
    let request = bash("echo here; exec sleep 90").limits(seconds(30));
    let request = request.build().expect("the request is a valid one");
    let mut end_when_heard = |event: &Event| {
        if matches!(event.kind, EventKind::Output(..)) {
            cancel.cancel();
        }
    };
    let report = sandbox.execute_with(request, &mut end_when_heard, &cancel);
    let report = report.expect("the request is taken");
    assert_eq!(report.status, Status::Cancelled, "its word was not heard: {:?}", report.error);
    assert_eq!(report.stdout, "here\n");
}

/// Every write is announced by a queued signal, and the queue is shared by all executions of a user.
#[test]
fn a_flood_of_writes_does_not_cost_neighbours_their_output() {
    with_each_backend(|sandbox: &Sandbox| {
        std::thread::scope(|scope| {
            let floods: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let limits = seconds(3).with_output(sandbox::ByteSize::mib(64));
                        let limits = limits.expect("that much output is a limit");
                        execute("write_flood", sandbox, python(WRITE_FLOOD).limits(limits))
                    })
                })
                .collect();
            let mut rounds = 0;
            while rounds < 5 || !floods.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                assert_heard_while_it_runs(sandbox);
                rounds += 1;
            }
            for flood in floods {
                let Some(report) = flood.join().expect("no panic") else { return };
                let ended = [Status::Timeout, Status::OutputLimit].contains(&report.status);
                assert!(ended && report.stdout.starts_with("begun\n"), "{:?}", report.status);
            }
        });
    });
}
