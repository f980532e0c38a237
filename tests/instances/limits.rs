//! Limits of one process, and limits of all processes of an instance together.

use std::thread;
use std::time::Duration;

use sandbox::{
    BackendError, ByteSize, CancelToken, Ending, Limits, NetworkPolicy, ProcessLimits, SandboxSpec,
    TimeKind,
};
use sandbox_tests::wait::wait_for;

use crate::harness::{
    Silent, TEST_TIMEOUT, bash, create, limits, output, python, run, start, wait,
    with_each_backend, with_instance,
};

#[test]
fn the_limits_of_one_process_do_not_touch_another() {
    with_instance(|instance| {
        let short = Duration::from_millis(200);
        let wall = ProcessLimits { wall_time: Some(short), ..limits() };
        let cpu = ProcessLimits { cpu_time: Some(short), ..limits() };
        let written = ProcessLimits { output_bytes: 1000, ..limits() };
        let burn = "import os\nos.fork()\nwhile True: pass";
        thread::scope(|scope| {
            let other = scope
                .spawn(|| output(instance, bash("until [ -e go ]; do sleep 0.01; done; echo on")));
            for (spec, limits, ending) in [
                (bash("sleep 60"), wall, Ending::TimedOut(TimeKind::Wall)),
                (python(burn), cpu, Ending::TimedOut(TimeKind::Cpu)),
                (bash("yes"), written, Ending::TooMuchOutput),
            ] {
                let process = instance.start(spec, limits).unwrap();
                let outcome = process.wait(&mut Silent, &CancelToken::new()).unwrap();
                assert_eq!(outcome.ending, ending);
                assert!(outcome.stdout.len() <= 1000);
            }
            instance.put(&"go".parse().unwrap(), b"", false).unwrap();
            assert_eq!(other.join().unwrap(), "on\n");
        });
    });
}

#[test]
fn the_cpu_time_of_a_process_is_its_own() {
    with_instance(|instance| {
        output(instance, python("import time\nwhile time.process_time() < 0.3: pass"));
        let little = run(instance, bash("true")).usage.cpu_time();
        assert!(little < Duration::from_millis(200), "{little:?}");
    });
}

#[test]
fn a_fork_bomb_stays_within_the_processes_of_the_instance() {
    with_each_backend(|backend| {
        let instance = create(backend, SandboxSpec::new(Limits::run().with_pids(20).unwrap()));
        let instance = instance.as_ref();
        let bomb = "import os, time
count = 1
while True:
    try: pid = os.fork()
    except OSError: break
    if pid == 0: time.sleep(60)
    count += 1
open('full', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
print(count)
";
        let first =
            "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('on')";
        let count = thread::scope(|scope| {
            let first = start(instance, python(first));
            let bomb = scope.spawn(|| output(instance, python(bomb)));
            let (full, go) = ("full".parse().unwrap(), "go".parse().unwrap());
            let is_full = wait_for(TEST_TIMEOUT, || instance.get(&full, 1).ok());
            is_full.expect("the bomb reaches the limit");
            // The supervisor's own work goes on.
            instance.put(&go, b"", false).unwrap();
            assert_eq!(wait(first.as_ref()).stdout, b"on\n");
            bomb.join().unwrap().trim().parse::<u64>().unwrap()
        });
        assert!((2..=20).contains(&count), "{count}");
        assert_eq!(output(instance, bash("echo on")), "on\n");
    });
}

#[test]
fn memory_is_shared_and_its_limit_ends_the_instance() {
    with_each_backend(|backend| {
        let limits = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
        let instance = create(backend, SandboxSpec::new(limits));
        let other = start(instance.as_ref(), bash("sleep 60"));
        let outcome = run(instance.as_ref(), python("x = bytearray(1 << 30)"));
        assert_eq!(outcome.ending, Ending::OutOfMemory);
        let outcome = other.wait(&mut Silent, &CancelToken::new()).unwrap();
        assert_eq!(outcome.ending, Ending::OutOfMemory);
        assert!(instance.start(bash("true"), crate::harness::limits()).is_err());
    });
}

/// Holds COUNT locks in each of 600 files.
const LOCKS: &str = "
import fcntl, os, time
for number in range(4):
    if os.fork() == 0: break
else: time.sleep(600)
files = [open(f'/tmp/{number}.{each}', 'w') for each in range(150)]
for place in range(COUNT, 0, -1):
    for file in files: fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * place)
open(f'held{number}', 'w').close()
time.sleep(600)
";

/// Opens COUNT connections to each of three servers that accept none.
const CONNECTIONS: &str = "
import os, socket, time
for number in range(3):
    server = socket.create_server(('127.0.0.1', 0), backlog=4096)
    for _ in range(COUNT):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        client.close()
    open(f'held{number}', 'w').close()
    os.dup(server.detach())
time.sleep(600)
";

/// Starts a program that holds this many of something, and waits for it only when the instance is
/// gone, or when it holds them all.
fn assert_limited_while_nobody_waits(network: NetworkPolicy, program: &str, few: u32, many: u32) {
    with_each_backend(|backend| {
        for (count, is_over) in [(few, false), (many, true)] {
            let limits = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
            let instance = create(backend, SandboxSpec { network, ..SandboxSpec::new(limits) });
            let instance = instance.as_ref();
            let process = start(instance, python(&program.replace("COUNT", &count.to_string())));
            if is_over {
                let is_gone = || {
                    instance.start(bash("true"), crate::harness::limits()).is_err().then_some(())
                };
                wait_for(TEST_TIMEOUT, is_gone).expect("the instance is killed");
                assert_eq!(wait(process.as_ref()).ending, Ending::OutOfMemory);
            } else {
                for number in 0..3 {
                    let held = format!("held{number}").parse().unwrap();
                    wait_for(TEST_TIMEOUT, || instance.get(&held, 1).ok()).expect("it holds them");
                }
                assert_eq!(output(instance, bash("echo on")), "on\n");
            }
        }
    });
}

#[test]
fn file_locks_are_limited_while_nobody_waits() {
    assert_limited_while_nobody_waits(NetworkPolicy::None, LOCKS, 1, 80);
}

#[test]
fn unaccepted_connections_are_limited_while_nobody_waits() {
    assert_limited_while_nobody_waits(NetworkPolicy::Localhost, CONNECTIONS, 10, 4000);
}

#[test]
fn a_cpu_time_limit_of_all_processes_together_is_refused() {
    with_each_backend(|backend| {
        let limits = Limits::run().with_cpu_time(Duration::from_secs(1)).unwrap();
        let created = backend.create(SandboxSpec::new(limits), &CancelToken::new());
        assert!(matches!(created.err(), Some(BackendError::Refused(_))));
    });
}
