//! A program behaves the same warm and cold.

use sandbox_tests::warm::StartMethod;

use super::program::{Program, cases_of_driver, compare};
use super::{others, python};

const BOTH: &[StartMethod] = &[StartMethod::Fresh, StartMethod::Forked];

/// Names of the driver's cases that differ, and why.
const DIFFERENT: &[&str] = &[
    // What is there from the start is frozen, so that collections and the end pass over it: the count of
    // frozen objects is not 0.
    "garbage collector",
];

fn same(cases: Vec<Program>) -> Vec<Program> {
    cases.into_iter().filter(|case| !DIFFERENT.contains(&case.name.as_str())).collect()
}

#[test]
fn python_sees_the_process_that_it_sees_cold() {
    compare("python", BOTH, &python::process());
}

#[test]
fn python_sees_the_world_that_it_sees_cold() {
    compare("python", BOTH, &python::world());
}

#[test]
fn python_ends_as_it_ends_cold() {
    compare("python", BOTH, &python::endings());
}

#[test]
fn python_does_what_it_does_cold() {
    compare("python", BOTH, &same(cases_of_driver("python")));
}

#[test]
fn javascript_does_what_it_does_cold() {
    compare("javascript", &[StartMethod::Fresh], &same(cases_of_driver("javascript")));
}

#[test]
fn java_does_what_it_does_cold() {
    compare("java", &[StartMethod::Fresh], &some_of(same(cases_of_driver("java"))));
}

#[test]
fn java_is_compiled_as_it_is_cold() {
    compare("java", &[StartMethod::Fresh], &some_of(same(cases_of_driver("java-compile"))));
}

#[test]
fn javascript_sees_what_it_sees_cold() {
    compare("javascript", &[StartMethod::Fresh], &others::javascript());
}

#[test]
fn typescript_sees_what_it_sees_cold() {
    compare("typescript", &[StartMethod::Fresh], &others::typescript());
}

#[test]
fn java_sees_what_it_sees_cold() {
    compare("java", &[StartMethod::Fresh], &some_of(others::java()));
}

/// Every third: a case takes four virtual machines, and each of them its time. All of them if `SANDBOX_RUN_ALL_CASES`
/// is set.
fn some_of(cases: Vec<Program>) -> Vec<Program> {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    let step = if std::env::var_os("SANDBOX_RUN_ALL_CASES").is_some() { 1 } else { 3 };
    cases.into_iter().step_by(step).collect()
}
