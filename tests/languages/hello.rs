//! Every language there is a recipe for is here and says hello: one test for each folder of `runtimes`.

use sandbox::{Request, Status};
use sandbox_tests::backend::{needs_of, with_each_backend, with_each_backend_that_has};

use crate::program::execute;

include!(concat!(env!("OUT_DIR"), "/hello.rs"));

/// What is promised, so that recipes that get lost are noticed.
const FEWEST: usize = 20;

fn says_hello(language: &str) {
    with_each_backend_that_has(needs_of(language), |sandbox| {
        let hello =
            sandbox.runtimes().hello(language).expect("a folder is called like its language");
        let report = execute(sandbox, Request::builder(language).code(&*hello.code));
        assert_eq!(report.status, Status::Completed, "{:?}\n{}", report.error, report.stderr);
        assert_eq!(report.stdout, hello.expected);
    });
}

#[test]
fn there_are_at_least_twenty_languages() {
    with_each_backend(|sandbox| {
        let statuses = sandbox.runtimes().probe_all();
        let available = statuses.iter().filter(|status| status.missing.is_none()).count();
        assert!(available >= FEWEST, "only {available} of {statuses:#?}");
    });
}
