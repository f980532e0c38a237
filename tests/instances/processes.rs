//! Processes one after another and at once, how they end, and what ends with them.

use std::thread;
use std::time::Duration;

use sandbox::{CancelToken, Ending, Instance, ProcessSpec, Stdin};
use sandbox_tests::user::as_ordinary_user;

use crate::harness::{
    CancelAtOutput, Silent, bash, limits, output, python, run, start, wait, with_instance,
};

/// Starts a process twice removed, in a session of its own, which nobody waits for.
const DAEMON: &str = "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('daemon', 'w').close()
        time.sleep(60)
    os._exit(0)
while not os.path.exists('daemon'): time.sleep(0.01)
";

#[test]
fn ten_run_one_after_another_and_ten_at_once() {
    let test = || {
        with_instance(|instance| {
            for number in 0..10 {
                assert_eq!(
                    output(instance, bash(&format!("echo {number}"))),
                    format!("{number}\n")
                );
            }
            // Each waits until all of them run.
            let meet =
                "touch here.$$; until [ $(ls here.* | wc -l) = 10 ]; do sleep 0.01; done; echo met";
            thread::scope(|scope| {
                let each = (0..10).map(|_| scope.spawn(|| output(instance, bash(meet))));
                let each: Vec<_> = each.collect();
                for one in each {
                    assert_eq!(one.join().unwrap(), "met\n");
                }
            });
        });
    };
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user("processes::ten_run_one_after_another_and_ten_at_once", test);
}

#[test]
fn a_process_tells_how_it_ended_and_what_it_wrote() {
    with_instance(|instance| {
        let outcome = run(instance, bash("echo out; echo err >&2; exit 3"));
        assert_eq!(outcome.ending, Ending::Exited(3));
        assert_eq!((&outcome.stdout[..], &outcome.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(run(instance, bash("kill -SEGV $$")).ending, Ending::Signaled(11));
        let directory = ProcessSpec { directory: "sub".to_owned(), ..bash("pwd") };
        output(instance, bash("mkdir sub"));
        assert_eq!(output(instance, directory), "/work/sub\n");
        let long = vec![b'x'; 1 << 20];
        let cat = ProcessSpec { stdin: Stdin::Bytes(long.clone()), ..bash("cat | wc -c") };
        assert_eq!(output(instance, cat), format!("{}\n", long.len()));
    });
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_and_leaves_the_instance_usable() {
    with_instance(|instance| {
        let missing = ProcessSpec { command: vec!["/usr/bin/missing".to_owned()], ..bash("") };
        let process = start(instance, missing);
        let error = process.wait(&mut Silent, &CancelToken::new()).unwrap_err();
        assert!(sandbox::with_causes(&error).contains("/usr/bin/missing"), "{error:?}");
        drop(process);
        assert_eq!(output(instance, bash("echo on")), "on\n");
    });
}

#[test]
fn what_a_process_leaves_behind_ends_with_it() {
    let test = || {
        with_instance(|instance| {
            output(instance, python(DAEMON));
            assert_eq!(living(instance), 0);
        });
    };
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user("processes::what_a_process_leaves_behind_ends_with_it", test);
}

/// How many Python processes there are besides the one that counts them.
fn living(instance: &dyn Instance) -> usize {
    let count = "import os
def name(pid):
    try: return open(f'/proc/{pid}/comm').read()
    except OSError: return ''
print(sum(name(pid).startswith('python') for pid in os.listdir('/proc') if pid.isdigit()) - 1)";
    output(instance, python(count)).trim().parse().unwrap()
}

#[test]
fn a_cancelled_process_ends_with_its_descendants_and_leaves_the_others_alone() {
    with_instance(|instance| {
        thread::scope(|scope| {
            let other = scope
                .spawn(|| output(instance, bash("until [ -e go ]; do sleep 0.01; done; echo on")));
            let cancel = CancelToken::new();
            let endless = format!("{DAEMON}\nprint('up', flush=True)\nwhile True: time.sleep(1)");
            let outcome = start(instance, python(&endless))
                .wait(&mut CancelAtOutput(cancel.clone()), &cancel)
                .unwrap();
            assert_eq!(outcome.ending, Ending::Cancelled);
            assert_eq!(living(instance), 0);
            instance.put(&"go".parse().unwrap(), b"", false).unwrap();
            assert_eq!(other.join().unwrap(), "on\n");
        });
    });
}

#[test]
fn a_dropped_process_ends_with_its_descendants() {
    with_instance(|instance| {
        drop(start(instance, python("import time\ntime.sleep(60)")));
        assert_eq!(living(instance), 0);
    });
}

#[test]
fn a_signal_reaches_the_program() {
    with_instance(|instance| {
        let trap = "trap 'echo caught; exit 4' USR1; touch ready; while :; do sleep 0.01; done";
        let process = start(instance, bash(trap));
        let outcome = thread::scope(|scope| {
            let outcome = scope.spawn(|| wait(process.as_ref()));
            output(instance, bash("until [ -e ready ]; do sleep 0.01; done"));
            process.signal(libc_usr1()).unwrap();
            outcome.join().unwrap()
        });
        assert_eq!((outcome.ending, &outcome.stdout[..]), (Ending::Exited(4), &b"caught\n"[..]));
        assert!(start(instance, bash("sleep 1")).signal(19).is_err(), "it would stop its guard");
    });
}

fn libc_usr1() -> i32 {
    rustix::process::Signal::USR1.as_raw()
}

#[test]
fn a_process_is_waited_for_once() {
    with_instance(|instance| {
        let process = instance.start(bash("true"), limits()).unwrap();
        assert_eq!(wait(process.as_ref()).ending, Ending::Exited(0));
        assert!(process.wait(&mut Silent, &CancelToken::new()).is_err());
        assert!(instance.usage().unwrap().cpu_time > Duration::ZERO);
    });
}
