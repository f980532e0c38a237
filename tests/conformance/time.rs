//! Time on the clock and time on the CPUs.

use sandbox::Report;
use sandbox_tests::backend::{execute, with_each_backend};
use std::time::{Duration, Instant};

use crate::table::{bash, c, ended_saying, millis, python};

/// A program that is over its time has ended by then, on a machine with other things to do, and long before it would
/// have by itself.
const GRACE: Duration = Duration::from_secs(20);
/// Enough time for a program to start and print, with every protection and on a busy machine.
const TO_BEGIN: Duration = Duration::from_secs(3);
/// Enough that only the CPU time can have run out.
const LONG: Duration = Duration::from_mins(1);

table! {
    a_busy_loop_runs_out_of_time: c("int main(void) { for (;;); }").limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_sleeper_runs_out_of_time: bash("sleep 60").limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_program_that_stops_itself_runs_out_of_time:
        bash("kill -STOP $$").limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_program_whose_every_process_is_stopped_runs_out_of_time:
        bash("for i in 1 2 3; do sleep 60 & kill -STOP $!; done; kill -STOP $$")
            .limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_program_that_ignores_every_signal_runs_out_of_time:
        python("import signal, time\n\
                for number in signal.valid_signals() - {9, 19}:\n    signal.signal(number, signal.SIG_IGN)\n\
                print('ready')\n\
                while True: time.sleep(60)")
            .limits(limits!(with_wall_time(TO_BEGIN)))
        => Timeout, |report: &Report| {
            assert_eq!(report.stdout, "ready\n");
            ended_saying("wall time limit of 3s")(report);
        };
    a_reader_of_a_pipe_that_nobody_writes_runs_out_of_time:
        bash("mkfifo p; cat p").limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_crowd_of_busy_children_runs_out_of_time:
        bash("for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait")
            .limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    a_child_in_a_session_of_its_own_runs_out_of_time:
        bash("setsid sleep 60 & wait").limits(limits!(with_wall_time(millis(500))))
        => Timeout, at_the_wall;
    what_was_printed_before_the_end_is_kept:
        python("import time\nprint('before')\ntime.sleep(60)").limits(limits!(with_wall_time(TO_BEGIN)))
        => Timeout, |report: &Report| assert_eq!(report.stdout, "before\n");

    one_busy_process_uses_its_cpu_time_up:
        c("int main(void) { for (;;); }").limits(limits!(with_cpu_time(millis(300)), with_wall_time(LONG)))
        => Timeout, at_the_cpu_limit;
    busy_children_use_it_up_together:
        bash("for i in 1 2 3 4; do (while :; do :; done) & done; wait")
            .limits(limits!(with_cpu_time(millis(300)), with_wall_time(LONG)))
        => Timeout, at_the_cpu_limit;
    /// No single one of them lives for more than some milliseconds.
    children_that_live_briefly_use_it_up_together:
        bash("while :; do /bin/true; done").limits(limits!(with_cpu_time(millis(300)), with_wall_time(LONG)))
        => Timeout, at_the_cpu_limit;
    /// Their parent does not wait for them, so nothing adds up in it.
    children_nobody_waits_for_use_it_up_together:
        python("import os, signal\n\
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                while True:\n    try:\n        if os.fork() == 0:\n            for _ in range(200000): pass\n            os._exit(0)\n    except BlockingIOError: pass")
            .limits(limits!(with_cpu_time(millis(300)), with_wall_time(LONG)))
        => Timeout, at_the_cpu_limit;
    threads_use_it_up_together:
        c("#include <pthread.h>\nstatic void *spin(void *x) { for (;;); return x; }\n\
           int main(void) { pthread_t t; for (int i = 0; i < 3; i++) pthread_create(&t, 0, spin, 0); spin(0); }")
            .limits(limits!(with_cpu_time(millis(300)), with_wall_time(LONG)))
        => Timeout, at_the_cpu_limit;
    a_sleeper_does_not_use_cpu_time:
        bash("sleep 0.6; echo done").limits(limits!(with_cpu_time(millis(300))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "done\n");
}

fn at_the_wall(report: &Report) {
    ended_saying("wall time limit of 500ms")(report);
    let wall = report.stages.last().expect("a stage that ran").usage.wall_time;
    assert!(wall >= millis(500), "ended too early, after {wall:?}");
    assert!(wall < millis(500) + GRACE, "ended too late, after {wall:?}");
}

fn at_the_cpu_limit(report: &Report) {
    ended_saying("CPU time limit of 300ms")(report);
    let used = report.cpu_time_ms;
    assert!(used >= 290.0, "ended too early, after {used} ms");
    // Of the two minutes that two processors could have given it.
    assert!(used < 10_000.0, "ended too late, after {used} ms");
}

#[test]
fn the_caller_waits_no_longer_than_the_limit_and_a_grace() {
    with_each_backend(|sandbox| {
        let request = bash("trap '' TERM INT HUP; sleep 60 & sleep 60")
            .limits(limits!(with_wall_time(millis(300))));
        let begun = Instant::now();
        execute("the_caller_waits", sandbox, request);
        let waited = begun.elapsed();
        assert!(waited >= millis(300) && waited < millis(300) + GRACE, "{waited:?}");
    });
}

#[test]
fn a_share_of_a_cpu_is_all_a_program_gets() {
    with_each_backend(|sandbox| {
        // Half a CPU for a second of wall time, wanted by two processes.
        let request = bash("(while :; do :; done) & while :; do :; done")
            .limits(limits!(with_cpus(0.5), with_wall_time(millis(1500))));
        let Some(report) = execute("a_share_of_a_cpu", sandbox, request) else {
            return;
        };
        let share = report.cpu_time_ms / report.execution_time_ms;
        assert!(share < 0.7, "it had {share} of a CPU where 0.5 was its share");
        assert!(share > 0.05, "it had {share} of a CPU where 0.5 was its share");
    });
}
