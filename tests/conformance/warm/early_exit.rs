//! A warm runtime can announce its exit, and is then not waited for. Nothing of it runs afterwards, and a hostile program gains
//! nothing by announcing.

use std::time::Duration;

use sandbox::{Report, RequestBuilder, Sandbox, Status};
use sandbox_tests::process::descendants;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{StartMethod, execute, execute_warm, prime};

use crate::table::python;

/// How warm.py announces its exit.
const ANNOUNCE: &str = "
import os
def announce_exit():
    os.pread(0, 1, 0x7BA5E1F000000000)
";

fn announcing(code: &str) -> RequestBuilder {
    python(&format!("{ANNOUNCE}\n{code}"))
}

fn waiting(method: StartMethod) -> Sandbox {
    let sandbox = method.only().build().expect("a sandbox can be started");
    prime(&sandbox, || python("pass"));
    sandbox
}

#[test]
fn a_runtime_that_announces_its_exit_runs_no_further() {
    for method in [StartMethod::Fresh, StartMethod::Forked] {
        let sandbox = waiting(method);
        let code = "print('before', flush=True)\nannounce_exit()\nprint('after', flush=True)";
        let report = execute_warm(&sandbox, announcing(code));
        assert_eq!((report.status, report.exit_code), (Status::Completed, 0), "{method:?}");
        assert_eq!(
            (report.stdout.as_str(), report.stderr.as_str()),
            ("before\n", ""),
            "{method:?}"
        );
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
}

#[test]
fn no_signal_handler_runs_after_an_announced_exit() {
    let sandbox = waiting(StartMethod::Fresh);
    let code = "
import signal
def ring(*_):
    for name in range(1000):
        os.write(1, b'after\\n')
        open(f'after{name}', 'w').close()
signal.signal(signal.SIGALRM, ring)
print('before', flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
try:
    announce_exit()
finally:
    ring()
";
    let mut announced = 0;
    for _ in 0..20 {
        let report = execute_warm(&sandbox, announcing(code).collect("after*"));
        assert!(report.stdout.starts_with("before\n"), "{}", report.stdout);
        // The timer may fire before the announcement. Otherwise its files would be seen here, because files
        // are collected after the announcement.
        if report.stdout == "before\n" {
            assert!(report.output_files.is_empty(), "{:?}", report.output_files);
            announced += 1;
        }
    }
    assert!(announced > 0, "the timer was always first");
}

#[test]
fn an_announced_exit_ends_all_threads() {
    let sandbox = waiting(StartMethod::Fresh);
    let code = "
import threading, time
def work():
    while True:
        os.write(1, b'x')
        open('file', 'a').write('x')
for _ in range(3):
    threading.Thread(target=work).start()
time.sleep(0.01)
announce_exit()
print('after', flush=True)
";
    for _ in 0..5 {
        let report = execute_warm(&sandbox, announcing(code).collect("file"));
        assert_eq!((report.status, report.exit_code), (Status::Completed, 0), "{report:?}");
        assert!(report.stdout.starts_with('x') && !report.stdout.contains("after"));
    }
}

/// The children would go on running, so the announcement is ignored, and the call fails as in any process.
#[test]
fn a_process_with_children_cannot_announce_its_exit() {
    let sandbox = waiting(StartMethod::Fresh);
    let with_child = "
import subprocess
child = subprocess.Popen(['sleep', '0.2'])
try:
    announce_exit()
except OSError as error:
    print(error.strerror, child.wait(), flush=True)
";
    let report = execute_warm(&sandbox, announcing(with_child));
    assert_eq!(report.stdout, "Illegal seek 0\n", "{}", report.stderr);
    // A child cannot announce the exit of its parent.
    let of_child = "
if os.fork() == 0:
    announce_exit()
print(os.wait()[1], flush=True)
";
    let report = execute_warm(&sandbox, announcing(of_child));
    assert_eq!(report.stdout, "256\n", "{}", report.stderr);
}

#[test]
fn a_cold_runtime_cannot_announce_its_exit() {
    let sandbox = Sandbox::builder().warm(false).build().expect("a sandbox can be started");
    let code = "try:\n    announce_exit()\nexcept OSError as error:\n    print(error.strerror)\nraise SystemExit(3)";
    let report = execute(&sandbox, announcing(code));
    assert_eq!((report.stdout.as_str(), report.exit_code), ("Illegal seek\n", 3));
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn io_counters_include_a_program_that_announced_its_exit() {
    let code = "open('file', 'w').write('x' * 10000)\nprint(len(open('file').read()))";
    let cold = Sandbox::builder().warm(false).build().expect("a sandbox can be started");
    let figures = |report: Report| report.stages.last().expect("it has run").usage;
    let cold = figures(execute(&cold, python(code)));
    let sandbox = waiting(StartMethod::Fresh);
    let warm = figures(execute_warm(&sandbox, python(code)));
    let written = |bytes: u64| (10_000..11_000).contains(&bytes);
    assert!(written(cold.io_write_bytes) && written(warm.io_write_bytes), "{cold:?} {warm:?}");
    assert!((10_000..30_000).contains(&warm.io_read_bytes), "{warm:?}");
    assert!(warm.cpu_time() > Duration::ZERO, "{warm:?}");
}

#[test]
fn it_is_taken_down_like_any_other() {
    let sandbox = waiting(StartMethod::Fresh);
    execute_warm(&sandbox, announcing("announce_exit()"));
    drop(sandbox);
    let gone = wait_for(Duration::from_secs(30), || descendants().is_empty().then_some(()));
    assert!(gone.is_some(), "{:?}", descendants());
}
