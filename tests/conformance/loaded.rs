//! Sandboxes with a compiled program preloaded: they behave like those in which it is
//! written on request.

use std::time::Duration;

use sandbox::{Report, Request, RequestBuilder, Sandbox, Start};
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{execute, start_of_run};

/// Tells what it finds around it, and spoils its own file.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments) {
    fflush(stdout);
    system("ls -lAR --time-style=+ /work; id -u; ls /proc/self/fd | wc -l");
    printf("%d %s\n", count, count > 1 ? arguments[1] : "none");
    int c;
    while ((c = getchar()) != EOF) putchar(c);
    fflush(stdout);
    return unlink("/work/.program/program") == 0 ? 7 : 8;
}
"#;

fn request() -> RequestBuilder {
    Request::builder("c").code(PROGRAM)
}

fn loaded(sandbox: &Sandbox) -> usize {
    sandbox.pool().expect("this backend has a pool").loaded
}

fn wait_until_loaded(sandbox: &Sandbox) {
    let some = wait_for(Duration::from_secs(30), || (loaded(sandbox) > 0).then_some(()));
    assert!(some.is_some(), "{:?}", sandbox.pool());
}

/// A sandbox in which the program lies already. Nothing else is prepared: whatever is not built on request is
/// one with the program in it.
fn with_program() -> Sandbox {
    let sandbox = Sandbox::builder().spare_slots(0).build().expect("a sandbox can be started");
    // The first may compile it, the next two ask for it twice.
    for _ in 0..3 {
        execute(&sandbox, request());
    }
    wait_until_loaded(&sandbox);
    sandbox
}

fn seen(report: &Report) -> (i32, &str, &str) {
    (report.exit_code, &report.stdout, &report.stderr)
}

fn written(report: &Report) -> u64 {
    report.stages.last().expect("it has run").usage.io_write_bytes
}

#[test]
fn a_program_sees_the_same_whether_it_was_there_before_or_not() {
    let sandbox = with_program();
    let plain = Sandbox::builder().warm(false).build().expect("a sandbox can be started");
    let asked = || request().args(["word"]).stdin("some input\n");
    let expected = execute(&plain, asked());
    assert_eq!(expected.exit_code, 7, "{} {}", expected.stdout, expected.stderr);
    assert_eq!(loaded(&plain), 0);
    for _ in 0..3 {
        wait_until_loaded(&sandbox);
        let report = execute(&sandbox, asked());
        assert_eq!(seen(&report), seen(&expected));
        assert_eq!(start_of_run(&report), Start::Prepared);
        assert_eq!(written(&report), written(&expected));
    }
}

#[test]
fn another_program_gets_its_own() {
    let sandbox = with_program();
    let other = PROGRAM.replace("none", "other");
    let report = execute(&sandbox, Request::builder("c").code(other));
    assert!(report.stdout.contains("1 other\n"), "{}", report.stdout);
    let report = execute(&sandbox, request());
    assert!(report.stdout.contains("1 none\n"), "{}", report.stdout);
}
