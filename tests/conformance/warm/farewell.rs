//! A runtime may say that it ends, and is then not waited for. Whoever says so has ended: nothing of it runs on,
//! and nobody gains anything by it.

use std::time::Duration;

use sandbox::{Report, RequestBuilder, Sandbox, Status};
use sandbox_tests::process::descendants;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{Way, execute, execute_warm, prime};

use crate::table::python;

/// What warm.py says at the end.
const FAREWELL: &str = "
import os
def farewell():
    os.pread(0, 1, 0x7BA5E1F000000000)
";

fn saying(code: &str) -> RequestBuilder {
    python(&format!("{FAREWELL}\n{code}"))
}

fn waiting(way: Way) -> Sandbox {
    let sandbox = way.only().build().expect("a sandbox can be started");
    prime(&sandbox, || python("pass"));
    sandbox
}

#[test]
fn whoever_says_that_it_ends_has_ended() {
    for way in [Way::Own, Way::Copied] {
        let sandbox = waiting(way);
        let code = "print('before', flush=True)\nfarewell()\nprint('after', flush=True)";
        let report = execute_warm(&sandbox, saying(code));
        assert_eq!((report.status, report.exit_code), (Status::Completed, 0), "{way:?}");
        assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("before\n", ""), "{way:?}");
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
}

#[test]
fn a_signal_does_not_bring_it_back() {
    let sandbox = waiting(Way::Own);
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
    farewell()
finally:
    ring()
";
    let mut heard = 0;
    for _ in 0..20 {
        let report = execute_warm(&sandbox, saying(code).collect("after*"));
        assert!(report.stdout.starts_with("before\n"), "{}", report.stdout);
        // The timer may ring before the word is heard. Else what it does would be seen here, because files
        // are collected after the last word was read.
        if report.stdout == "before\n" {
            assert!(report.output_files.is_empty(), "{:?}", report.output_files);
            heard += 1;
        }
    }
    assert!(heard > 0, "the timer was always first");
}

#[test]
fn its_threads_end_with_it() {
    let sandbox = waiting(Way::Own);
    let code = "
import threading, time
def work():
    while True:
        os.write(1, b'x')
        open('file', 'a').write('x')
for _ in range(3):
    threading.Thread(target=work).start()
time.sleep(0.01)
farewell()
print('after', flush=True)
";
    for _ in 0..5 {
        let report = execute_warm(&sandbox, saying(code).collect("file"));
        assert_eq!((report.status, report.exit_code), (Status::Completed, 0), "{report:?}");
        assert!(report.stdout.starts_with('x') && !report.stdout.contains("after"));
    }
}

/// They would go on: then the word is not heard, and the call comes back as it would anywhere.
#[test]
fn with_children_it_has_to_end_by_itself() {
    let sandbox = waiting(Way::Own);
    let with_child = "
import subprocess
child = subprocess.Popen(['sleep', '0.2'])
try:
    farewell()
except OSError as error:
    print(error.strerror, child.wait(), flush=True)
";
    let report = execute_warm(&sandbox, saying(with_child));
    assert_eq!(report.stdout, "Illegal seek 0\n", "{}", report.stderr);
    // Nor is a child's word that of its parent.
    let of_child = "
if os.fork() == 0:
    farewell()
print(os.wait()[1], flush=True)
";
    let report = execute_warm(&sandbox, saying(of_child));
    assert_eq!(report.stdout, "256\n", "{}", report.stderr);
}

#[test]
fn cold_it_is_a_call_like_any_other() {
    let sandbox = Sandbox::builder().warm(false).build().expect("a sandbox can be started");
    let code = "try:\n    farewell()\nexcept OSError as error:\n    print(error.strerror)\nraise SystemExit(3)";
    let report = execute(&sandbox, saying(code));
    assert_eq!((report.stdout.as_str(), report.exit_code), ("Illegal seek\n", 3));
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn what_it_read_and_wrote_is_counted_as_ever() {
    let code = "open('file', 'w').write('x' * 10000)\nprint(len(open('file').read()))";
    let cold = Sandbox::builder().warm(false).build().expect("a sandbox can be started");
    let figures = |report: Report| report.stages.last().expect("it has run").usage;
    let cold = figures(execute(&cold, python(code)));
    let sandbox = waiting(Way::Own);
    let warm = figures(execute_warm(&sandbox, python(code)));
    let written = |bytes: u64| (10_000..11_000).contains(&bytes);
    assert!(written(cold.io_write_bytes) && written(warm.io_write_bytes), "{cold:?} {warm:?}");
    assert!((10_000..30_000).contains(&warm.io_read_bytes), "{warm:?}");
    assert!(warm.cpu_time() > Duration::ZERO, "{warm:?}");
}

#[test]
fn it_is_taken_down_like_any_other() {
    let sandbox = waiting(Way::Own);
    execute_warm(&sandbox, saying("farewell()"));
    drop(sandbox);
    let gone = wait_for(Duration::from_secs(30), || descendants().is_empty().then_some(()));
    assert!(gone.is_some(), "{:?}", descendants());
}
