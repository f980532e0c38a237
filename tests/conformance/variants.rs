//! Variants of the container backends (crun, gVisor under Docker): a successful program, each limit, and a denied call.

use sandbox::{Report, RequestBuilder, Sandbox, Status};
use sandbox_tests::backend::{BackendUnderTest, Feature, execute, named, with_variant};

use crate::table::{assert_consistent, bash, ended_saying, mib, millis, python};

/// A request, how it ends, and what else its report says.
type Row = (&'static str, fn() -> RequestBuilder, Status, fn(&BackendUnderTest, &Report));

const ROWS: &[Row] = &[
    (
        "hello",
        || bash("echo hello; echo there >&2; cat").stdin("input"),
        Status::Completed,
        |_, report| {
            assert_eq!((&*report.stdout, &*report.stderr), ("hello\ninput", "there\n"));
        },
    ),
    (
        "memory",
        || {
            let code = "kept = []\nwhile True: kept.append(bytearray(1 << 20))";
            python(code).limits(limits!(with_memory(mib(64))))
        },
        Status::MemoryLimit,
        |_, report| {
            ended_saying("memory limit of 64M")(report);
            assert!(report.memory_used_kb > 48 << 10, "{} KiB", report.memory_used_kb);
        },
    ),
    (
        "time",
        || bash("while :; do :; done").limits(limits!(with_wall_time(millis(300)))),
        Status::Timeout,
        |_, report| {
            assert!(report.cpu_time_ms > 0.0, "{}", report.cpu_time_ms);
        },
    ),
    (
        "CPU time",
        || bash("while :; do :; done").limits(limits!(with_cpu_time(millis(300)))),
        Status::Timeout,
        |_, report| ended_saying("CPU")(report),
    ),
    (
        "processes",
        || python(FORK).limits(limits!(with_pids(8))),
        Status::Completed,
        |backend, report| {
            assert_eq!(report.stdout, "7\n");
            let peak = if backend.lacks(Feature::ProcessFigures) { 1 } else { 8 };
            assert_eq!(report.stages[0].usage.processes_peak, peak);
        },
    ),
    (
        "output",
        || bash("yes").limits(limits!(with_output(mib(1)))),
        Status::OutputLimit,
        |_, report| {
            assert_eq!((report.stdout.len(), report.stdout_truncated), (1 << 20, true));
        },
    ),
    (
        "disk",
        || python(FILL).limits(limits!(with_disk(mib(4)))),
        Status::Completed,
        |_, report| assert_eq!(report.stdout, "4 4 4\n"),
    ),
    (
        "a denied call",
        || python(DENIED),
        Status::Completed,
        |backend, report| {
            assert_eq!(report.stdout, "1\n");
            let is_told = !backend.lacks(Feature::NamedDenials);
            let told: Vec<&str> = report.violations.iter().map(|call| &*call.syscall).collect();
            assert_eq!(told, if is_told { &["unshare"][..] } else { &[] });
        },
    ),
    (
        "no network",
        || python(NETWORK),
        Status::Completed,
        |backend, report| {
            let loopback = backend.lacks(Feature::NoLoopback);
            assert_eq!(report.stdout, if loopback { "refused\n" } else { "unreachable\n" });
        },
    ),
];

/// How many more it can have beside itself.
const FORK: &str = "
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except BlockingIOError:
    print(count)
";

/// How many whole MiB fit into each place.
const FILL: &str = "
def fill(place):
    count = 0
    try:
        with open(place + '/big', 'wb', buffering=0) as file:
            while True:
                count += file.write(bytes(1 << 16))
    except OSError:
        return (count + (1 << 18)) >> 20
print(*map(fill, ['/work', '/tmp', '/dev/shm']))
";

const DENIED: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == -1
print(ctypes.get_errno())
";

const NETWORK: &str = "
import socket
try:
    socket.create_connection(('127.0.0.1', 9), timeout=5)
except ConnectionRefusedError:
    print('refused')
except OSError:
    print('unreachable')
";

fn limits_hold_in(name: &str) {
    let backend = named(name);
    with_variant(name, |sandbox| {
        for (row, request, status, check) in ROWS {
            let Some(report) = execute(row, sandbox, request()) else { continue };
            assert_eq!(report.status, *status, "{row}: {:?}", report.error);
            assert_consistent(&report);
            check(backend, &report);
        }
    });
}

#[test]
fn limits_hold_in_containers_of_crun() {
    limits_hold_in("crun");
}

#[test]
fn limits_hold_in_containers_that_an_engine_has_gvisor_build() {
    limits_hold_in("docker-runsc");
}

#[test]
fn a_runtime_that_the_engine_does_not_have_is_refused_with_the_names_of_those_that_it_has() {
    let docker = named("docker");
    if !docker.is_here() {
        return;
    }
    let built = (docker.choose)(Sandbox::builder()).docker_runtime("nonsense").build();
    let reason = sandbox::with_causes(&built.expect_err("there is no such runtime"));
    for part in ["'nonsense'", "runc", "runsc", "--docker-runtime"] {
        assert!(reason.contains(part), "no {part}: {reason}");
    }
    assert_eq!(reason.lines().count(), 1, "{reason}");
}
