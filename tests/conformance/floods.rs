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

/// Calls that are denied, one after the other, until the time is up.
const DENIED_FLOOD: &str = "#include <sys/ptrace.h>\n#include <stdio.h>\n\
    int main(void) { for (;;) ptrace(PTRACE_TRACEME, 0, 0, 0); }";

fn a_second() -> Limits {
    Limits::run().with_wall_time(Duration::from_secs(1)).expect("a second is a limit")
}

#[test]
fn denied_calls_without_end_are_answered_ever_more_slowly() {
    with_each_backend_that_has(&[Feature::NamedDenials], |sandbox| {
        let request = c(DENIED_FLOOD).limits(a_second());
        let Some(report) = execute("denied_flood", sandbox, request) else { return };
        assert_eq!(report.status, Status::Timeout, "{:?}", report.error);
        let [violation] = report.violations.as_slice() else { panic!("{:?}", report.violations) };
        assert_eq!(violation.syscall, "ptrace");
        // A thousand at once, then at most one a millisecond: what our own CPU time is bounded by.
        #[expect(clippy::cast_precision_loss, reason = "the count is far below where that begins")]
        let count = violation.count as f64;
        assert!(count > 1000.0, "{count}");
        assert!(count <= 1001.0 + report.execution_time_ms + 500.0, "{count}");
    });
}

/// A program says a word and waits; whoever hears it ends it. Unheard, it runs out of time.
fn assert_heard_while_it_runs(sandbox: &Sandbox) {
    let cancel = CancelToken::new();
    let request = bash("echo here; exec sleep 30").limits(
        Limits::run().with_wall_time(Duration::from_secs(10)).expect("ten seconds are a limit"),
    );
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
                        let limits = a_second().with_output(sandbox::ByteSize::mib(64));
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
