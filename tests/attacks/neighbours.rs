//! Two sandboxes at the same time, and the host beside them: whether one notices what the other does with a file.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use sandbox::{Limits, Protection, Report, Request, Sandbox, SandboxBuilder, Volume, VolumeAccess};
use sandbox_tests::backend::{show, with_backend_set_up};
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
    // One after the other: without the protection, what is locked is the host's own.
    for backend in ["native", "runc", "crun", "docker"] {
        let Some(noticed) = each_for_itself_and_with_shared_inodes(backend) else { continue };
        // An Engine makes the devices of each container.
        let shares_devices = backend != "docker";
        assert_eq!(noticed.second.stdout.contains("LOCKED /dev/null"), shares_devices, "{backend}");
    }
}

/// Has two programs look for each other with the protection and without. Gives what they notice without it, if there is such a
/// backend.
fn each_for_itself_and_with_shared_inodes(backend: &str) -> Option<Noticed> {
    let noticed = side_by_side(backend, |builder| builder)?;
    assert_eq!(lines(&noticed.first, "SAW"), 0, "{backend}: {}", noticed.first.stdout);
    assert_eq!(lines(&noticed.second, "LOCKED"), 0, "{backend}: {}", noticed.second.stdout);
    assert!(
        !noticed.host_was_refused,
        "{backend}: a lock held inside keeps the host from its own file"
    );
    for report in [&noticed.first, &noticed.second] {
        assert!(report.enforced.contains(&Protection::PrivateInodes));
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(report.enforced.contains(&Protection::PrivateFileInodes), is_root);
    }
    let noticed = side_by_side(backend, |builder| builder.without(Protection::PrivateInodes))?;
    assert!(noticed.first.stdout.contains("SAW /usr/bin/env"), "{}", noticed.first.stdout);
    assert!(noticed.second.stdout.contains("LOCKED /usr/bin/env"), "{}", noticed.second.stdout);
    assert!(noticed.host_was_refused);
    for report in [&noticed.first, &noticed.second] {
        assert!(report.missing.contains(&Protection::PrivateInodes));
        assert!(report.missing.contains(&Protection::PrivateFileInodes));
    }
    Some(noticed)
}

/// Runs the two programs at the same time, and has the host use a file that they see.
fn side_by_side(
    backend: &str,
    set_up: impl Fn(SandboxBuilder) -> SandboxBuilder,
) -> Option<Noticed> {
    let noticed = std::cell::OnceCell::new();
    with_backend_set_up(backend, &set_up, |sandbox| {
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
    let noticed = noticed.into_inner()?;
    for report in [&noticed.first, &noticed.second] {
        show(report);
        assert!(report.success, "{:?}", report.error);
    }
    // Otherwise it would prove nothing that neither noticed the other.
    assert!(
        noticed.first.stdout.starts_with("watched ") && noticed.second.stdout.contains("used ")
    );
    Some(noticed)
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
    // Inside a sandbox of ours; and for each user, which every container of an Engine has of its own.
    let for_each_user = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
    let for_each_user: usize = for_each_user.trim().parse().unwrap();
    for (backend, expected) in [("native", 32), ("docker", for_each_user.min(1000))] {
        with_backend_set_up(
            backend,
            |builder| builder,
            |sandbox| {
                let meet = tempfile::tempdir().unwrap();
                let reports: Vec<Report> = std::thread::scope(|scope| {
                    let runs: Vec<_> = (0..SANDBOXES)
                        .map(|_| scope.spawn(|| run(sandbox, TAKE_ALL, &meet)))
                        .collect();
                    let all_hold = || std::fs::read_dir(meet.path()).unwrap().count() == SANDBOXES;
                    let hold = wait_for(DEADLINE, || all_hold().then_some(()));
                    // While they all hold what they got.
                    let host = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC);
                    std::fs::write(meet.path().join("done"), "").unwrap();
                    let reports = runs.into_iter().map(|run| run.join().unwrap()).collect();
                    hold.expect("all sandboxes hold their instances at the same time");
                    host.expect("the host has an instance left");
                    reports
                });
                for report in &reports {
                    assert_eq!(report.stdout, format!("{expected}\n"), "{backend}");
                    assert!(report.enforced.contains(&Protection::InotifyLimits), "{backend}");
                }
            },
        );
    }
}
