//! Cancelling, refusing and running many executions at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use sandbox::{
    CancelToken, Event, EventKind, ExecuteError, ExecutionId, Hooks, Protection, Refusal, Report,
    Request, Sandbox, Stage, StagePlan, StageReport, Status,
};
use sandbox_tests::backend::{Feature, lacks, show, with_each_backend, with_each_backend_that_has};
use sandbox_tests::process::all;

use crate::table::{assert_consistent, bash, c, millis, python};

/// A program that is cancelled has ended by then, also on a busy machine, and would not have by itself.
const LONG_BEFORE: Duration = Duration::from_secs(30);

/// Cancels as soon as the program has said something.
fn cancel_when_it_speaks(sandbox: &Sandbox, request: Request) -> (Report, Duration) {
    let cancel = CancelToken::new();
    let mut since = None;
    let mut on_event = |event: &Event| {
        if matches!(event.kind, EventKind::Output(..)) {
            since.get_or_insert_with(Instant::now);
            cancel.cancel();
        }
    };
    let report = sandbox.execute_with(request, &mut on_event, &cancel).unwrap();
    show(&report);
    (report, since.expect("the program spoke").elapsed())
}

#[test]
fn a_token_ends_a_running_program() {
    with_each_backend(|sandbox| {
        let request = bash("echo up; sleep 60").build().unwrap();
        let (report, took) = cancel_when_it_speaks(sandbox, request);
        assert_eq!((report.status, report.stdout.as_str()), (Status::Cancelled, "up\n"));
        assert_consistent(&report);
        assert!(took < LONG_BEFORE, "{took:?}");
    });
}

#[test]
fn a_cancelled_program_can_handle_sigterm() {
    with_each_backend(|sandbox| {
        // Short naps: a signal that comes just before one is heard of after it.
        let code = "import signal, sys, time\n\
                    def goodbye(*_):\n    sys.stdout.write('goodbye\\n')\n    sys.exit(0)\n\
                    signal.signal(signal.SIGTERM, goodbye)\nsys.stdout.write('up\\n')\n\
                    while True: time.sleep(0.01)";
        let (report, _) = cancel_when_it_speaks(sandbox, python(code).build().unwrap());
        assert_eq!(report.stdout, "up\ngoodbye\n");
        assert_eq!(report.status, Status::Cancelled);
        assert_consistent(&report);
    });
}

#[test]
fn a_cancelled_program_that_ignores_sigterm_is_killed() {
    with_each_backend(|sandbox| {
        let script = "trap '' TERM INT HUP QUIT; (trap '' TERM; while :; do :; done) & echo up; \
                      while :; do sleep 60; done";
        let (report, took) = cancel_when_it_speaks(sandbox, bash(script).build().unwrap());
        assert_eq!(report.status, Status::Cancelled);
        assert_consistent(&report);
        assert!(took < LONG_BEFORE, "{took:?}");
    });
}

#[test]
fn a_stopped_program_can_be_cancelled() {
    with_each_backend(|sandbox| {
        let (report, took) =
            cancel_when_it_speaks(sandbox, bash("echo up; kill -STOP $$").build().unwrap());
        assert_eq!(report.status, Status::Cancelled);
        assert!(took < LONG_BEFORE, "{took:?}");
    });
}

#[test]
fn a_token_cancelled_before_the_start_starts_nothing() {
    with_each_backend(|sandbox| {
        let cancel = CancelToken::new();
        cancel.cancel();
        let request = bash("echo ran").build().unwrap();
        let report = sandbox.execute_with(request, &mut |_| {}, &cancel).unwrap();
        assert_eq!((report.status, report.stdout.as_str()), (Status::Cancelled, ""));
        assert_consistent(&report);
    });
}

#[test]
fn a_token_can_be_used_from_another_thread_and_after_the_end() {
    with_each_backend(|sandbox| {
        let execution = sandbox.start(bash("sleep 60").build().unwrap()).unwrap();
        let token = execution.cancel_token();
        let other = token.clone();
        std::thread::spawn(move || other.cancel());
        assert_eq!(execution.wait().unwrap().status, Status::Cancelled);
        token.cancel();
    });
}

#[test]
fn dropping_the_handle_ends_the_program_and_waits_for_that() {
    // A name that no other test's processes have.
    const NAME: &str = "dropped-program";
    with_each_backend_that_has(&[Feature::HostProcesses], |sandbox| {
        let script = format!(
            "cp /usr/bin/bash /tmp/{NAME}; \
             /tmp/{NAME} -c \"trap '' TERM; echo up; while :; do :; done\""
        );
        let mut execution = sandbox.start(bash(&script).build().unwrap()).unwrap();
        let spoke = execution.events().find(|event| matches!(event.kind, EventKind::Output(..)));
        assert!(spoke.is_some());
        let busy = || all().into_iter().filter(|process| process.name == NAME).count();
        assert_eq!(busy(), 1);
        drop(execution);
        assert_eq!(busy(), 0);
    });
}

#[test]
fn cancelling_one_execution_leaves_the_others() {
    with_each_backend(|sandbox| {
        let first = sandbox.start(bash("sleep 60").build().unwrap()).unwrap();
        let second = sandbox.start(bash("sleep 0.5; echo fine").build().unwrap()).unwrap();
        first.cancel();
        assert_eq!(first.wait().unwrap().status, Status::Cancelled);
        let report = second.wait().unwrap();
        assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "fine\n"));
    });
}

/// Refuses at one of the steps, and counts which steps were reached.
#[derive(Default)]
struct Refusing {
    request: bool,
    stage: Option<Stage>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hooks for Refusing {
    fn on_request(&self, _: &Request) -> Result<(), Refusal> {
        self.seen.lock().unwrap().push("request".into());
        if self.request {
            return Err(Refusal::new("not from here"));
        }
        Ok(())
    }

    fn before_stage(&self, _: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        self.seen.lock().unwrap().push(format!("before {}", plan.stage));
        if self.stage == Some(plan.stage) {
            return Err(Refusal::new("not that stage"));
        }
        Ok(())
    }

    fn after_stage(&self, _: ExecutionId, stage: &StageReport) {
        self.seen.lock().unwrap().push(format!("after {}", stage.name));
    }

    fn on_report(&self, report: &Report) {
        self.seen.lock().unwrap().push(report.status.to_string());
    }
}

#[test]
fn hooks_see_each_step_and_may_refuse_it() {
    let run = |hooks: Refusing| {
        let seen = Arc::clone(&hooks.seen);
        let sandbox = Sandbox::builder().hooks(hooks).without_compile_cache().build().unwrap();
        let request = c("int main(void) { return 0; }").build().unwrap();
        let result = sandbox.execute(request);
        let seen = seen.lock().unwrap().clone();
        (result, seen)
    };
    let (result, seen) = run(Refusing::default());
    assert!(result.unwrap().success);
    let steps =
        ["request", "before compile", "after compile", "before run", "after run", "completed"];
    assert_eq!(seen, steps);

    let (result, seen) = run(Refusing { request: true, ..Refusing::default() });
    assert!(
        matches!(&result, Err(ExecuteError::Refused(refusal)) if refusal.reason() == "not from here")
    );
    assert_eq!(seen, steps[..1]);

    let (result, seen) = run(Refusing { stage: Some(Stage::Run), ..Refusing::default() });
    assert!(
        matches!(&result, Err(ExecuteError::Refused(refusal)) if refusal.reason() == "not that stage")
    );
    assert_eq!(seen, steps[..4]);
}

#[test]
fn many_executions_at_once_each_have_their_own_world() {
    with_each_backend(|sandbox| {
        // Where each one has a kernel of its own: there are few processors.
        let many = if lacks(sandbox.isolation(), Feature::HostProcesses) { 12 } else { 64 };
        let start = Barrier::new(many);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..many {
                let (start, done) = (&start, &done);
                scope.spawn(move || {
                    let script = "cat; echo $1 > own; sleep 0.2; cat own; ls | wc -l; exit $2";
                    let request = bash(script)
                        .stdin(format!("input {number}\n").as_str())
                        .args([format!("file {number}"), (number % 7).to_string()])
                        .collect("own")
                        .limits(limits!(with_wall_time(millis(60_000))))
                        .build()
                        .unwrap();
                    start.wait();
                    let report = sandbox.execute(request).unwrap();
                    let expected = format!("input {number}\nfile {number}\n2\n");
                    assert_eq!(report.stdout, expected, "{:?} {}", report.error, report.stderr);
                    assert_eq!(report.exit_code, i32::try_from(number % 7).unwrap());
                    assert_eq!(report.output_files[0].content, format!("file {number}\n"));
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), many);
    });
}

#[test]
fn a_misbehaving_execution_does_not_disturb_its_neighbours() {
    with_each_backend(|sandbox| {
        let bad = [
            bash("while :; do :; done").limits(limits!(with_wall_time(millis(1500)))),
            python("kept = []\nwhile True: kept.append(bytearray(1 << 20))"),
            bash("bomb() { bomb | bomb & }; bomb; sleep 60")
                .limits(limits!(with_wall_time(millis(1500)))),
            bash("yes"),
        ];
        let running: Vec<_> = bad
            .into_iter()
            .map(|request| sandbox.start(request.build().unwrap()).unwrap())
            .collect();
        for _ in 0..5 {
            let report = sandbox.execute(bash("echo fine").build().unwrap()).unwrap();
            assert_eq!(report.stdout, "fine\n", "{:?}", report.error);
        }
        for execution in running {
            let report = execution.wait().unwrap();
            assert!(!report.success && report.status != Status::Error, "{:?}", report.error);
        }
    });
}

#[test]
fn an_allowed_missing_protection_that_is_available_is_enforced() {
    with_each_backend(|sandbox| {
        let request = bash("true").allow_missing(Protection::Seccomp).build().unwrap();
        let report = sandbox.execute(request).unwrap();
        assert!(report.enforced.contains(&Protection::Seccomp));
        assert!(!report.missing.contains(&Protection::Seccomp));
    });
}
