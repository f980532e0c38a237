//! The events of a running program.

use sandbox::{CancelToken, Event, EventKind, Report, Request, Sandbox, Stage, StreamKind};
use sandbox_tests::backend::{Feature, show, with_each_backend, with_each_backend_that_has};

use crate::table::{bash, c, lines, millis, python};

fn execute_and_listen(sandbox: &Sandbox, request: Request) -> (Vec<Event>, Report) {
    let mut events = Vec::new();
    let mut listen = |event: &Event| events.push(event.clone());
    let report = sandbox.execute_with(request, &mut listen, &CancelToken::new());
    let report = report.unwrap();
    show(&report);
    (events, report)
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.name()).collect()
}

/// All bytes of a stream, or of both in the order of their events.
fn bytes(events: &[Event], wanted: Option<StreamKind>) -> Vec<u8> {
    let mut all = Vec::new();
    for event in events {
        if let EventKind::Output(stream, bytes) = &event.kind
            && wanted.is_none_or(|wanted| wanted == *stream)
        {
            all.extend_from_slice(bytes);
        }
    }
    all
}

fn assert_numbered(events: &[Event]) {
    let numbers = events.iter().map(|event| event.seq);
    assert!(numbers.eq(1..=events.len() as u64), "the numbers have gaps");
}

#[test]
fn events_are_numbered_without_gaps_and_carry_every_byte() {
    with_each_backend(|sandbox| {
        let code = "import os, sys\nfor n in range(300):\n    os.write(1, ('ö' * (n * 3)).encode())\n    \
                    os.write(2, b'e%d ' % n)\nos.write(1, b'\\xff\\xc3')";
        let request = python(code).build().unwrap();
        let (events, report) = execute_and_listen(sandbox, request);
        assert_numbered(&events);
        assert_eq!(names(&events)[..2], ["queued", "stage"]);
        assert_eq!(names(&events).last(), Some(&"report"));
        let stdout = bytes(&events, Some(StreamKind::Stdout));
        let mut expected = "ö".repeat(3 * 299 * 300 / 2).into_bytes();
        expected.extend(b"\xff\xc3");
        assert_eq!(stdout, expected);
        assert_eq!(String::from_utf8_lossy(&stdout), report.stdout);
        let stderr = bytes(&events, Some(StreamKind::Stderr));
        assert_eq!(stderr, report.stderr.as_bytes());
    });
}

#[test]
fn events_follow_the_order_of_the_output() {
    with_each_backend_that_has(&[Feature::OutputOrder], |sandbox| {
        let code = "import os\nfor n in range(50):\n    os.write(1, b'o%d\\n' % n)\n    os.write(2, b'e%d\\n' % n)";
        let (events, report) = execute_and_listen(sandbox, python(code).build().unwrap());
        assert_eq!(bytes(&events, None), report.output.as_bytes());
        let expected = lines(0..50, |n| format!("o{n}\ne{n}\n"));
        assert_eq!(report.output, expected);
    });
}

#[test]
fn an_event_never_splits_a_utf8_character() {
    with_each_backend(|sandbox| {
        let code = "import os, time\nfor byte in '🦀é'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.01)";
        let (events, report) = execute_and_listen(sandbox, python(code).build().unwrap());
        for event in &events {
            if let EventKind::Output(_, bytes) = &event.kind {
                assert!(std::str::from_utf8(bytes).is_ok(), "{bytes:?}");
            }
        }
        assert_eq!(report.stdout, "🦀é");
    });
}

#[test]
fn output_is_told_while_the_program_still_runs() {
    with_each_backend(|sandbox| {
        let cancel = CancelToken::new();
        let request = bash("echo first; sleep 60").build().unwrap();
        let mut heard = false;
        let report = sandbox.execute_with(
            request,
            &mut |event| {
                if matches!(event.kind, EventKind::Output(..)) {
                    heard = true;
                    cancel.cancel();
                }
            },
            &cancel,
        );
        assert!(heard);
        assert!(report.unwrap().execution_time_ms < 9000.0);
    });
}

#[test]
fn each_stage_is_announced() {
    with_each_backend(|sandbox| {
        let code = "#include <stdio.h>\n#warning told\nint main(void) { puts(\"x\"); }";
        let (events, _) = execute_and_listen(sandbox, c(code).build().unwrap());
        assert_numbered(&events);
        let stages: Vec<Stage> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Stage(stage) => Some(stage),
                _ => None,
            })
            .collect();
        assert_eq!(stages, [Stage::Compile, Stage::Run]);
        // What the compiler said comes between the two.
        let names = names(&events);
        assert_eq!(&names[..3], ["queued", "stage", "stderr"]);
        assert_eq!(&names[names.len() - 3..], ["stage", "stdout", "report"]);
    });
}

#[test]
fn events_beyond_the_output_limit_are_not_sent() {
    with_each_backend(|sandbox| {
        let request = bash("yes").limits(limits!(with_output(sandbox::ByteSize::kib(16))));
        let (events, report) = execute_and_listen(sandbox, request.build().unwrap());
        assert_numbered(&events);
        assert_eq!(bytes(&events, None).len(), 16 << 10);
        assert_eq!(report.stdout.len(), 16 << 10);
    });
}

#[test]
fn usage_is_sampled_if_requested() {
    with_each_backend_that_has(&[Feature::MovedBytes], |sandbox| {
        let code = "import os, time\nkept = bytearray(32 << 20)\nos.write(1, b'x' * 1000)\n\
                    end = time.monotonic() + 1\nwhile time.monotonic() < end: pass";
        let request = python(code).usage_interval(millis(50)).build().unwrap();
        let (events, report) = execute_and_listen(sandbox, request);
        assert_numbered(&events);
        let samples: Vec<_> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Usage(sample) => Some(sample),
                _ => None,
            })
            .collect();
        // A busy machine may be late with some, and never early.
        #[expect(clippy::cast_precision_loss, reason = "samples of a test are few")]
        let count = samples.len() as f64;
        let most = report.execution_time_ms / 50.0 + 2.0;
        assert!((2.0..=most).contains(&count), "{count} samples, {} ms", report.execution_time_ms);
        assert!(samples.is_sorted_by_key(|sample| sample.cpu_ms));
        assert!(samples.is_sorted_by_key(|sample| sample.io_write_bytes));
        // The last one may be taken while the program gives its memory back.
        let fullest = samples.iter().max_by_key(|sample| sample.memory_kb).unwrap();
        assert!((32 << 10..64 << 10).contains(&fullest.memory_kb), "{fullest:?}");
        assert_eq!(fullest.processes, 1, "{fullest:?}");
        let last = samples.last().unwrap();
        assert!(last.cpu_ms > 0, "{last:?}");
        assert!((1000..100_000).contains(&last.io_write_bytes), "{last:?}");
        assert!(last.io_read_bytes > 0, "{last:?}");
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a test are few")]
        let last_cpu = last.cpu_ms as f64;
        assert!(last_cpu <= report.cpu_time_ms + 50.0, "{last:?}");
    });
}

#[test]
fn usage_is_not_sampled_unless_requested() {
    with_each_backend(|sandbox| {
        let (events, _) = execute_and_listen(sandbox, bash("sleep 0.3").build().unwrap());
        assert_eq!(names(&events), ["queued", "stage", "report"]);
    });
}

#[test]
fn a_handle_gives_the_same_events_and_report() {
    with_each_backend(|sandbox| {
        let mut execution = sandbox.start(bash("echo hi; echo ho >&2").build().unwrap()).unwrap();
        let events: Vec<Event> = execution.events().collect();
        assert_numbered(&events);
        let report = execution.wait().unwrap();
        assert_eq!(bytes(&events, None), report.output.as_bytes());
        assert!(
            matches!(&events.last().unwrap().kind, EventKind::Report(told) if told.id == report.id)
        );
    });
}
