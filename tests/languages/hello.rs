//! Every language there is a recipe for is here and says hello: one test for each folder of `runtimes`.

use sandbox::{Request, Sandbox, Status};
use sandbox_tests::backend::{with_each_backend, with_native_and_another};

use crate::program::execute;

include!(concat!(env!("OUT_DIR"), "/hello.rs"));

/// What is promised, so that recipes that get lost are noticed.
const FEWEST: usize = 20;

/// The languages that every backend has to run in every test run; the others are tried behind all when that is asked for.
const MAIN: &[&str] =
    &["python", "javascript", "typescript", "go", "rust", "java", "c", "cpp", "ruby", "bash"];

fn says_hello(language: &str) {
    let test = |sandbox: &Sandbox| {
        let hello =
            sandbox.runtimes().hello(language).expect("a folder is called like its language");
        let report = execute(sandbox, Request::builder(language).code(&*hello.code));
        assert_eq!(report.status, Status::Completed, "{:?}\n{}", report.error, report.stderr);
        assert_eq!(report.stdout, hello.expected);
    };
    if MAIN.contains(&language) {
        with_each_backend(test);
    } else {
        with_native_and_another(language, 3, test);
    }
}

#[test]
fn there_are_at_least_twenty_languages() {
    with_each_backend(|sandbox| {
        let statuses = sandbox.runtimes().probe_all();
        let available = statuses.iter().filter(|status| status.missing.is_none()).count();
        assert!(available >= FEWEST, "only {available} of {statuses:#?}");
    });
}
