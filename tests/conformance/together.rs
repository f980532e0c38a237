//! The total limits of all sandboxes of a supervisor, which are reported differently from a program's own limits.

use sandbox::{Report, Request, Sandbox, SandboxBuilder, Status};

const MIB: u64 = 1 << 20;

/// Within the program's own limit of 256 MiB.
const MEMORY: &str = "kept = bytearray(150 << 20)\nprint('had it')";
/// Within the program's own limit of 64 processes.
const PROCESSES: &str = "for i in {1..40}; do sleep 1 & done; wait; echo had them";

fn run(builder: SandboxBuilder, language: &str, code: &str) -> Option<Report> {
    let sandbox = builder.spare_slots(0).warm(false).build().expect("a sandbox can be started");
    let has_cgroups = sandbox.capabilities().enforceable.contains(&sandbox::Protection::Memory);
    let request = Request::builder(language).code(code).build().expect("it is valid");
    let report = sandbox.execute(request).expect("the request is taken");
    if !has_cgroups {
        sandbox_tests::skip::skip("together", "this host gives us no cgroups");
        return None;
    }
    // Sequential executions all fit: nothing of an earlier one is still counted.
    let hello = Request::builder("bash").code("echo fine").build().expect("it is valid");
    assert_eq!(sandbox.execute(hello).expect("it is taken").stdout, "fine\n");
    Some(report)
}

#[test]
fn memory_of_all_sandboxes_together_is_bounded_but_is_no_limit_of_the_program() {
    let small = Sandbox::builder().total_limits(64 * MIB, 10_000);
    let Some(report) = run(small, "python", MEMORY) else { return };
    assert_eq!(report.status, Status::Error, "{:?}", report.error);
    let error = report.error.unwrap_or_default();
    assert!(error.contains("all sandboxes together"), "{error}");
}

#[test]
fn memory_within_the_total_limit_is_available() {
    let Some(report) = run(Sandbox::builder(), "python", MEMORY) else { return };
    assert_eq!((report.status, &*report.stdout), (Status::Completed, "had it\n"));
}

#[test]
fn processes_of_all_sandboxes_together_are_bounded() {
    let small = Sandbox::builder().total_limits(1024 * MIB, 20);
    let Some(report) = run(small, "bash", PROCESSES) else { return };
    assert!(report.stderr.contains("fork"), "{report:?}");
}

#[test]
fn processes_within_the_total_limit_are_available() {
    let Some(report) = run(Sandbox::builder(), "bash", PROCESSES) else { return };
    assert_eq!((&*report.stdout, &*report.stderr), ("had them\n", ""));
}
