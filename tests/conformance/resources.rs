//! Processes, disk, files: a program that reaches one of these limits gets an error from the kernel, and continues
//! or not as it likes.

use sandbox::{Isolation, Report, Status};
use sandbox_tests::backend::{Feature, execute, has, with_each_backend, with_variant};

use crate::table::{assert_consistent, bash, mib, millis, python};

table! {
    processes_are_limited: python(FORK).limits(limits!(with_pids(8))) => Completed, |report: &Report| {
        // The program itself is one of the eight.
        assert_eq!(report.stdout, "7 EAGAIN\n");
        if has(report, Feature::ProcessFigures) {
            assert_eq!(report.stages[0].usage.processes_peak, 8);
        }
    };
    threads_are_limited_like_processes:
        python("import threading\nwait = threading.Event()\nmade = 0\n\
                try:\n    while True:\n        threading.Thread(target=wait.wait, daemon=True).start()\n        made += 1\n\
                except RuntimeError: print(made)\nwait.set()")
            .limits(limits!(with_pids(8)))
        => Completed, |report: &Report| assert_eq!(report.stdout, "7\n");
    processes_that_ended_make_room:
        bash("for i in {1..60}; do /bin/true || exit 1; done").limits(limits!(with_pids(4)))
        => Completed, |report: &Report| assert!(report.stages[0].usage.processes_peak <= 4);
    disk_is_limited_in_bytes: python(FILL).limits(limits!(with_disk(mib(4)))) => Completed, |report: &Report| {
        let written = number(report);
        assert!(written <= 4 << 20 && written > 3 << 20, "{written} bytes were written");
    };
    every_writable_place_shares_the_one_disk: python(FILL_ALL).limits(limits!(with_disk(mib(4))))
        => Completed, |report: &Report| {
            // A runtime mounts each of them by itself; the sum is then bounded by the memory limit.
            let disks = if report.isolation == Isolation::Native { 1 } else { 3 };
            let (least, most) = ((3 << 20) * disks, (4 << 20) * disks);
            let written = number(report);
            assert!(written <= most && written > least, "{written} bytes were written");
        };
    disk_is_limited_in_files [FileCount]:
        python("made = 0\ntry:\n    while True:\n        open(f'/tmp/{made}', 'w').close()\n        made += 1\n\
                except OSError as error: print(made)")
            .limits(limits!(with_disk(mib(1))))
        => Completed, |report: &Report| {
            let made = number(report);
            assert!(near_256(made), "{made} files were made");
        };
    directories_and_links_count_as_files [FileCount]:
        python("import os\nmade = 0\ntry:\n    while True:\n        os.mkdir(f'/tmp/d{made}')\n        os.symlink('x', f'/tmp/l{made}')\n        made += 2\n\
                except OSError as error: print(made)")
            .limits(limits!(with_disk(mib(1))))
        => Completed, |report: &Report| {
            let made = number(report);
            assert!(near_256(made), "{made} names were made");
        };
    a_disk_that_is_full_can_be_emptied:
        bash("head -c 900K /dev/zero > a && rm a && head -c 900K /dev/zero > b && echo fits")
            .limits(limits!(with_disk(mib(1))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "fits\n");
    open_files_are_limited:
        python("import os\nopened = []\ntry:\n    while True: opened.append(os.open('/dev/null', 0))\n\
                except OSError as error: print(error.errno == 24, max(opened))")
            .limits(limits!(with_open_files(32)))
        => Completed, |report: &Report| assert_eq!(report.stdout, "True 31\n");
    the_limit_of_open_files_cannot_be_raised:
        python("import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n\
                try: resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))\n\
                except (ValueError, OSError): print(soft, hard)")
            .limits(limits!(with_open_files(32)))
        => Completed, |report: &Report| assert_eq!(report.stdout, "32 32\n");
    /// A hole takes no room on the disk, but a file larger than the disk is refused all the same.
    a_file_larger_than_the_disk_is_refused:
        python("import signal, os\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nfile = open('/tmp/hole', 'wb')\n\
                try: os.truncate(file.fileno(), 1 << 40)\nexcept OSError as error: print(error.errno)")
            .limits(limits!(with_disk(mib(4))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "27\n");
    no_core_is_written:
        python("import resource, os, signal\nprint(resource.getrlimit(resource.RLIMIT_CORE))\nos.kill(os.getpid(), signal.SIGQUIT)")
            .collect("**")
        => RuntimeError, |report: &Report| {
            assert_eq!(report.stdout, "(0, 0)\n");
            assert!(report.output_files.is_empty());
        };
}

const FORK: &str = "
import os, errno, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError as error:
    print(made, errno.errorcode[error.errno])
";

const FILL: &str = "
import errno
written = 0
try:
    with open('big', 'wb', buffering=0) as file:
        while True: written += file.write(bytes(65536))
except OSError as error:
    assert error.errno in (errno.ENOSPC, errno.EFBIG), error
print(written)
";

const FILL_ALL: &str = "
import errno
written = 0
for place in ('/tmp', '/work', '/dev/shm'):
    try:
        for number in range(1000):
            with open(f'{place}/{number}', 'wb', buffering=0) as file:
                written += file.write(bytes(65536))
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
print(written)
";

/// What the sandbox itself has on the disk must not count against the program, so there may be a few more.
fn near_256(made: u64) -> bool {
    (240..=264).contains(&made)
}

fn number(report: &Report) -> u64 {
    let text = report.stdout.trim();
    text.parse().unwrap_or_else(|_| panic!("'{text}' is no number"))
}

#[test]
fn a_fork_bomb_is_held_and_ended() {
    with_each_backend(|sandbox| {
        let request = bash("bomb() { bomb | bomb & }; bomb; sleep 60")
            .limits(limits!(with_pids(32), with_wall_time(millis(1500))));
        let Some(report) = execute("a_fork_bomb", sandbox, request) else {
            return;
        };
        // Where it cannot fork either, the shell gives up by itself.
        assert!(
            matches!(report.status, Status::Timeout | Status::RuntimeError | Status::OutputLimit),
            "{:?}",
            report.status
        );
        assert_consistent(&report);
        if has(&report, Feature::ProcessFigures) {
            let peak = report.stages[0].usage.processes_peak;
            assert!((16..=32).contains(&peak), "{peak} processes");
        }
        let after = execute("a_fork_bomb", sandbox, bash("echo fine")).unwrap();
        assert_eq!(after.stdout, "fine\n");
    });
}

/// See docs/adr/0034: the cgroup's limit alone lets a program that forks at its limit slow down every start of a sandbox.
#[test]
fn a_fork_at_the_limit_of_processes_is_refused_before_memory_is_copied() {
    with_variant("native", |sandbox| {
        let request = python("import resource\nprint(resource.getrlimit(resource.RLIMIT_NPROC))")
            .limits(limits!(with_pids(8)));
        let report = execute("a_fork_at_the_limit", sandbox, request).unwrap();
        // Init is counted with the program where both have the caller's id.
        let limit = if rustix::process::geteuid().is_root() { 8 } else { 9 };
        assert_eq!(report.stdout, format!("({limit}, {limit})\n"));
    });
}
