//! What was compiled once is not compiled again, and no other program is taken for it.

use std::time::{SystemTime, UNIX_EPOCH};

use sandbox::{Report, Request, Sandbox, Stage, StageReport, Status};

use crate::program::{execute, folder};

#[test]
fn go_is_compiled_once() {
    check("go", "hello.go");
}

#[test]
fn rust_is_compiled_once_and_warns_twice() {
    check_warning(&check("rust", "warning.rs"));
}

#[test]
fn java_is_compiled_once_and_warns_twice() {
    check_warning(&check("java", "Warning.java"));
}

#[test]
fn cpp_is_compiled_once_and_warns_twice() {
    check_warning(&check("cpp", "warning.cpp"));
}

/// Runs an uncached program twice, then with one byte changed. Gives the report
/// of the second time.
fn check(language: &str, file: &str) -> Report {
    let path = folder("languages/programs").join(language).join(file);
    // The user's own store, because toolchains take minutes to prepare; so the program must be a new one.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let code = format!("{}// {now}\n", std::fs::read_to_string(&path).unwrap());
    let changed = code.replace("hello, world", "jello, world");
    // Two sandboxes one after the other: what is kept outlives the one that made it.
    let first = run(&sandbox(), language, file, &code);
    let sandbox = sandbox();
    let second = run(&sandbox, language, file, &code);
    let third = run(&sandbox, language, file, &changed);
    let cached = [&first, &second, &third].map(|report| compile_stage(report).cached);
    assert_eq!(cached, [false, true, false]);
    assert_eq!(
        (first.stdout.as_str(), third.stdout.as_str()),
        ("hello, world\n", "jello, world\n")
    );
    assert_eq!((&second.stdout, &second.stderr), (&first.stdout, &first.stderr));
    assert_eq!(compile_stage(&second).output, compile_stage(&first).output);
    second
}

fn check_warning(report: &Report) {
    let output = &compile_stage(report).output;
    assert!(output.contains("warning") && output.contains("forgotten_value"), "{output}");
}

fn sandbox() -> Sandbox {
    Sandbox::new().unwrap_or_else(|error| panic!("{}", sandbox::with_causes(&error)))
}

fn run(sandbox: &Sandbox, language: &str, file: &str, code: &str) -> Report {
    let report = execute(sandbox, Request::builder(language).file(file, code));
    assert_eq!(report.status, Status::Completed, "{:?}\n{}", report.error, report.stderr);
    report
}

fn compile_stage(report: &Report) -> &StageReport {
    assert_eq!(report.stages[0].name, Stage::Compile);
    &report.stages[0]
}
