//! Programs that try to outlive their own end, or to look as if they had ended.

use sandbox::Report;
use sandbox_tests::backend::{Feature, execute, with_each_backend_that_has};

use crate::table::{bash, python};

// The status shows that they ended before their time was over: the daemons would have stayed for longer.
table! {
    a_daemon_ends_with_the_program: python(DAEMON) => Completed, |report: &Report| {
        assert_eq!(report.stdout, "daemon is up\n");
    };
    /// Its output stays open in the daemon, and is over all the same.
    a_daemon_that_holds_the_streams_ends_with_the_program:
        bash("(setsid sleep 60 &) ; echo over") => Completed, |report: &Report| {
            assert_eq!(report.stdout, "over\n");
        };
    a_stopped_child_ends_with_the_program: bash("sleep 60 & kill -STOP $!; echo over")
        => Completed, |_: &Report| ();
    closing_every_stream_is_not_an_end:
        bash("exec <&- >&- 2>&-; sleep 0.3; echo x > left; exit 4").collect("left")
        => RuntimeError, |report: &Report| {
            assert_eq!(report.exit_code, 4);
            assert_eq!(report.output_files[0].content, "x\n");
            assert!(report.execution_time_ms >= 290.0);
        };
    /// Orphans are reaped inside, so zombies do not use up the process limit.
    orphans_are_reaped_while_the_program_runs:
        bash("for i in {1..40}; do (/bin/true &); done; until (($(ls -d /proc/[0-9]* | wc -l) < 8)); do :; done")
            .limits(limits!(with_pids(16)))
        => Completed, |_: &Report| ();
    a_program_replaced_by_another_is_still_the_program: bash("exec bash -c 'exit 9'")
        => RuntimeError, |report: &Report| assert_eq!(report.exit_code, 9);
    the_main_thread_may_end_first:
        python("import threading, time, os\n\
                threading.Thread(target=lambda: (time.sleep(0.2), print('late'), os._exit(5))).start()")
        => RuntimeError, |report: &Report| {
            assert_eq!((report.exit_code, report.stdout.as_str()), (5, "late\n"));
        };
}

/// Forks twice with a session in between, so that it has neither parent nor terminal.
const DAEMON: &str = "
import os, time
up, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(told, b'x')
        for stream in (0, 1, 2): os.close(stream)
        time.sleep(60)
    os._exit(0)
os.wait()
os.read(up, 1)
print('daemon is up')
";

#[test]
fn a_daemon_is_dead_before_the_report() {
    with_each_backend_that_has(&[Feature::Volumes], |sandbox| {
        let place = tempfile::tempdir().unwrap();
        let volume = format!("{}:/out:rw", place.path().display());
        // The daemon holds a lock for as long as it lives, and the program ends when it has it.
        let request = bash(
            "(setsid flock /out/lock sleep 60 &)\n\
             while flock --nonblock /out/lock true; do :; done; echo held",
        );
        let request = request.volume(volume.parse().unwrap());
        let Some(report) = execute("a_daemon_is_gone", sandbox, request) else {
            return;
        };
        assert_eq!((report.success, report.stdout.as_str()), (true, "held\n"));
        let lock = std::fs::File::open(place.path().join("lock")).unwrap();
        assert!(lock.try_lock().is_ok(), "the daemon holds it");
    });
}
