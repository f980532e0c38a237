//! Prepared containers: the same results as new ones, and each used once.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbox::{Isolation, Report, RequestBuilder, Sandbox, SandboxBuilder, Start, Status};
use sandbox_tests::backend::{execute, with_each_backend_set_up};
use sandbox_tests::process::Process;
use sandbox_tests::residue::cgroups_of;
use sandbox_tests::wait::wait_for;

use crate::table::{bash, mib, millis, python};

/// Longer than a busy machine takes to start one.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

fn wait_until_ready(sandbox: &Sandbox) -> bool {
    let is_ready = || sandbox.pool().is_some_and(|pool| pool.ready > 0);
    wait_for(TEST_TIMEOUT, || is_ready().then_some(())).is_some()
}

/// Has this kind of container kept ready, and executes in one of those.
fn in_a_waiting_one(sandbox: &Sandbox, request: impl Fn() -> RequestBuilder) -> Report {
    for _ in 0..2 {
        execute("prepared", sandbox, request());
    }
    assert!(wait_until_ready(sandbox), "none is kept ready: {:?}", sandbox.pool());
    execute("prepared", sandbox, request()).expect("its toolchain is there")
}

fn with_each_container_backend(test: impl Fn(&Sandbox)) {
    let set_up = |builder: SandboxBuilder| builder.spare_slots(2);
    with_each_backend_set_up(&[], set_up, |sandbox| {
        if sandbox.isolation() != Isolation::Native {
            test(sandbox);
        }
    });
}

#[test]
fn a_repeated_program_is_preloaded_and_ends_in_the_same_way() {
    with_each_container_backend(|sandbox| {
        type Kind = (fn() -> RequestBuilder, Status);
        let kinds: [Kind; 4] = [
            (|| python("print(input())").stdin("said\n"), Status::Completed),
            (|| python("import sys; sys.exit(3)"), Status::RuntimeError),
            (
                || bash("while :; do :; done").limits(limits!(with_wall_time(millis(300)))),
                Status::Timeout,
            ),
            (|| python("x = bytearray(1 << 30); print(len(x))"), Status::MemoryLimit),
        ];
        for (request, status) in kinds {
            let report = in_a_waiting_one(sandbox, request);
            assert_eq!(report.status, status);
            assert_eq!(report.stages[0].start, Start::Prepared, "{:?}", sandbox.pool());
        }
    });
}

#[test]
fn a_warm_runtime_is_used_once() {
    with_each_container_backend(|sandbox| {
        let leave = || {
            bash("ls -A /work /tmp /dev/shm | grep -c left; touch {/work,/tmp,/dev/shm}/left; true")
        };
        for _ in 0..4 {
            assert_eq!(in_a_waiting_one(sandbox, leave).stdout, "0\n");
        }
    });
}

#[test]
fn other_limits_use_another_container() {
    with_each_container_backend(|sandbox| {
        in_a_waiting_one(sandbox, || bash("true"));
        let request =
            bash("df --output=size -B1 /tmp | tail -1").limits(limits!(with_disk(mib(8))));
        let report = execute("prepared", sandbox, request).expect("its toolchain is there");
        assert_eq!(report.stages[0].start, Start::Cold);
        assert_eq!(report.stdout.trim(), (8 << 20).to_string());
    });
}

#[test]
fn a_prepared_container_that_was_killed_is_not_used() {
    with_each_container_backend(|sandbox| {
        in_a_waiting_one(sandbox, || bash("true"));
        // None of them in the making: what is killed half made is another story.
        let are_made = || sandbox.pool().is_some_and(|pool| pool.ready == pool.wanted);
        assert!(wait_for(TEST_TIMEOUT, || are_made().then_some(())).is_some());
        let waiting = agents();
        assert!(!waiting.is_empty());
        for agent in waiting.iter().copied().filter_map(Process::read) {
            agent.kill();
        }
        // With all its threads: the table shows a process as dead when its first thread is.
        let are_dead = || agents().is_disjoint(&waiting).then_some(());
        assert!(wait_for(TEST_TIMEOUT, are_dead).is_some());
        let report = execute("prepared", sandbox, bash("echo here")).expect("bash is there");
        assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "here\n"));
    });
}

/// The agents in containers of this process.
fn agents() -> BTreeSet<i32> {
    let lists = cgroups_of(std::process::id())
        .into_iter()
        .map(|cgroup| cgroup.join("program/cgroup.procs"));
    let texts: String = lists.filter_map(|list| std::fs::read_to_string(list).ok()).collect();
    texts.lines().filter_map(|line| line.parse().ok()).collect()
}
