//! Two owners of one process, one of which uses all of the machine: its sandbox is kept off a CPU while the other works.

use std::time::Duration;

use sandbox::{Limits, Protection, Report, Request, Sandbox};
use sandbox_tests::backend::{show, with_native_set_up};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;

/// Longer than the programs need on a busy machine.
const DEADLINE: Duration = Duration::from_mins(2);
/// Between two executions of the light owner, so that it stays light.
const PAUSE: Duration = Duration::from_secs(1);

/// Computes on many CPUs until one of them is taken away, or until it has used this many seconds on one of them. Prints
/// how many were taken.
const COMPUTE: &str = r"
import os, time
others = []
for _ in range(min(CPUS, 48)):
    others.append(os.fork())
    if others[-1] == 0:
        while True: pass
while len(os.sched_getaffinity(0)) == CPUS and time.process_time() < SECONDS: pass
print(CPUS - len(os.sched_getaffinity(0)))
for other in others: os.kill(other, 9)
";

#[test]
fn a_heavy_owner_is_kept_off_one_cpu_while_another_works() {
    const NAME: &str = "a_heavy_owner_is_kept_off_one_cpu_while_another_works";
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skip(NAME, "there is one CPU");
    }
    with_native_set_up(
        |builder| builder,
        |sandbox| {
            if !sandbox.capabilities().enforceable.contains(&Protection::Memory) {
                return skip(NAME, "there are no cgroups");
            }
            // The same program keeps all CPUs while its owner is the only one.
            assert_eq!(heavy(sandbox, 3).stdout, "0\n");
            light(sandbox);
            let beside = std::thread::scope(|scope| {
                let heavy = scope.spawn(|| heavy(sandbox, 60));
                while wait_for(PAUSE, || heavy.is_finished().then_some(())).is_none() {
                    light(sandbox);
                }
                heavy.join().unwrap()
            });
            assert_eq!(beside.stdout, "1\n");
        },
    );
}

fn heavy(sandbox: &Sandbox, seconds: u32) -> Report {
    let limits = Limits::run().with_cpus(64.0).unwrap().with_wall_time(DEADLINE).unwrap();
    let cpus = std::thread::available_parallelism().unwrap().to_string();
    let code = COMPUTE.replace("SECONDS", &seconds.to_string()).replace("CPUS", &cpus);
    let request = Request::builder("python").code(code).workspaces_of("heavy").limits(limits);
    let report = sandbox.execute(request.build().unwrap()).unwrap();
    show(&report);
    assert!(report.success, "{:?}", report.error);
    report
}

fn light(sandbox: &Sandbox) {
    let request = Request::builder("python").code("print('hello')").workspaces_of("light");
    let report = sandbox.execute(request.build().unwrap()).unwrap();
    assert_eq!(report.stdout, "hello\n", "{:?}", report.error);
}
