//! Two sandboxes at the same time, and the host beside them: whether one notices what the other does with a file.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use sandbox::{Limits, Protection, Report, Request, Sandbox, SandboxBuilder, Volume, VolumeAccess};
use sandbox_tests::backend::{show, with_native_set_up};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use tempfile::TempDir;

/// Longer than two programs need on a busy machine.
const DEADLINE: Duration = Duration::from_mins(2);

/// What both sandboxes can name: everything near the top, and some files that the host uses too. Its own processes, what it may
/// write its own streams, and where the two meet are not shared, or are on purpose.
const LIST_NAMES: &str = r"
import os
own = ('/proc', '/meet', '/work', '/tmp', '/dev/shm', '/dev/pts')
names = []
for place, directories, files in os.walk('/'):
    names += [os.path.join(place, name) for name in files[:20]] + [place]
    directories[:] = [name for name in directories[:40] if os.path.join(place, name) not in own]
    if place.count('/') >= 4:
        directories.clear()
names += ['/usr/bin/env', '/usr/bin/python3', '/etc/passwd', '/dev/null', '/dev/tty', '/proc/self', '/proc']
print('\n'.join(sorted({name for name in names if not name.startswith(('/dev/fd', '/dev/std'))})[:1500]))
";

/// What the two programs and the host noticed of each other.
struct Noticed {
    first: Report,
    second: Report,
    host_was_refused: bool,
}

#[test]
fn no_file_tells_one_sandbox_of_another_unless_they_share_inodes() {
    let noticed = side_by_side(|builder| builder);
    assert_eq!(lines(&noticed.first, "SAW"), 0, "{}", noticed.first.stdout);
    assert_eq!(lines(&noticed.second, "LOCKED"), 0, "{}", noticed.second.stdout);
    assert!(!noticed.host_was_refused, "a lock held inside keeps the host from its own file");
    for report in [&noticed.first, &noticed.second] {
        assert!(report.enforced.contains(&Protection::PrivateInodes));
    }
    // After it and not beside it: what is locked here is the host's own.
    let noticed = side_by_side(|builder| builder.without(Protection::PrivateInodes));
    assert!(noticed.first.stdout.contains("SAW /usr/bin/env"), "{}", noticed.first.stdout);
    assert!(noticed.second.stdout.contains("LOCKED /usr/bin/env"), "{}", noticed.second.stdout);
    assert!(noticed.second.stdout.contains("LOCKED /dev/null"), "{}", noticed.second.stdout);
    assert!(noticed.host_was_refused);
}

/// Runs the two programs at the same time, and has the host use a file that they see.
fn side_by_side(set_up: impl Fn(SandboxBuilder) -> SandboxBuilder) -> Noticed {
    let noticed = std::cell::OnceCell::new();
    with_native_set_up(&set_up, |sandbox| {
        let meet = tempfile::tempdir().unwrap();
        std::fs::write(meet.path().join("names"), names(sandbox)).unwrap();
        let (first, second) =
            (include_str!("neighbours/first.py"), include_str!("neighbours/second.py"));
        let both = std::thread::scope(|scope| {
            let first = scope.spawn(|| run(sandbox, first, &meet));
            let second = scope.spawn(|| run(sandbox, second, &meet));
            let ready = meet.path().join("ready");
            let is_ready = wait_for(DEADLINE, || ready.exists().then_some(()));
            let env = File::open("/usr/bin/env").unwrap();
            let host_was_refused = is_ready.is_some()
                && flock(&env, FlockOperation::NonBlockingLockExclusive).is_err();
            let second = second.join().unwrap();
            std::fs::write(meet.path().join("done"), "").unwrap();
            Noticed { first: first.join().unwrap(), second, host_was_refused }
        });
        assert!(noticed.set(both).is_ok(), "it runs once");
    });
    let noticed = noticed.into_inner().expect("the native backend is tested");
    for report in [&noticed.first, &noticed.second] {
        show(report);
        assert!(report.success, "{:?}", report.error);
    }
    // Otherwise it would prove nothing that neither noticed the other.
    assert!(
        noticed.first.stdout.starts_with("watched ") && noticed.second.stdout.contains("used ")
    );
    noticed
}

fn names(sandbox: &Sandbox) -> String {
    let report = sandbox.execute(Request::builder("python").code(LIST_NAMES).build().unwrap());
    let names = report.unwrap().stdout;
    assert!(names.lines().count() > 500, "{names}");
    names
}

fn run(sandbox: &Sandbox, code: &str, meet: &TempDir) -> Report {
    let volume = Volume::new(meet.path(), Path::new("/meet"), VolumeAccess::ReadWrite).unwrap();
    let limits = Limits::run().with_open_files(4096).unwrap().with_wall_time(DEADLINE).unwrap();
    let request = Request::builder("python").code(code).volume(volume).limits(limits);
    sandbox.execute(request.build().unwrap()).unwrap()
}

fn lines(report: &Report, begin: &str) -> usize {
    report.stdout.lines().filter(|line| line.starts_with(begin)).count()
}

/// The kernel counts inotify instances of a sandbox for the owner of its user namespace too.
#[test]
fn one_sandbox_leaves_inotify_instances_to_the_others_and_to_the_host() {
    const TAKE_ALL: &str = "import ctypes, os, time\nlibc = ctypes.CDLL(None)\ncount = 0\n\
        while count < 1000 and libc.inotify_init() >= 0: count += 1\n\
        print(count, flush=True)\nopen(f'/meet/{os.getpid()}-{time.time_ns()}', 'w').close()\n\
        while not os.path.exists('/meet/done'): time.sleep(0.01)";
    /// With the kernel's default of 128 for each user, this many would leave none.
    const SANDBOXES: usize = 6;
    if !rustix::process::geteuid().is_root() {
        return skip(
            "inotify instances of neighbours",
            "an ordinary user's sandboxes share its limit",
        );
    }
    with_native_set_up(
        |builder| builder,
        |sandbox| {
            let meet = tempfile::tempdir().unwrap();
            let counts = std::thread::scope(|scope| {
                let runs: Vec<_> =
                    (0..SANDBOXES).map(|_| scope.spawn(|| run(sandbox, TAKE_ALL, &meet))).collect();
                let all_hold = || std::fs::read_dir(meet.path()).unwrap().count() == SANDBOXES;
                let hold = wait_for(DEADLINE, || all_hold().then_some(()));
                // While they all hold what they got.
                let host = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC);
                std::fs::write(meet.path().join("done"), "").unwrap();
                let reports = runs.into_iter().map(|run| run.join().unwrap());
                let counts: Vec<String> = reports.map(|report| report.stdout).collect();
                hold.expect("all sandboxes hold their instances at the same time");
                host.expect("the host has an instance left");
                counts
            });
            assert!(counts.iter().all(|count| count == "32\n"), "{counts:?}");
        },
    );
}
