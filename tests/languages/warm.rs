//! The corpus in warm runtimes, with the same expectations.

use sandbox::{Sandbox, Start};
use sandbox_tests::warm::{StartMethod, execute, start_of_run, wait_until_full, warm_runtimes};

use crate::corpus;
use crate::program::folder;

/// A runtime is started ahead from its second use on.
const USES: usize = 3;

#[test]
fn the_python_corpus_runs_warm() {
    each("python", StartMethod::Fresh);
}

#[test]
fn the_python_corpus_runs_in_forks() {
    each("python", StartMethod::Forked);
}

#[test]
fn the_javascript_corpus_runs_warm() {
    each("javascript", StartMethod::Fresh);
}

#[test]
fn the_typescript_corpus_runs_warm() {
    each("typescript", StartMethod::Fresh);
}

#[test]
fn the_java_corpus_runs_warm() {
    each("java", StartMethod::Fresh);
}

fn each(language: &str, method: StartMethod) {
    let sandbox = method.only().build().expect("a sandbox can be started");
    let entries = std::fs::read_dir(folder("corpus").join(language)).expect("there is a corpus");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    let mut names: Vec<String> =
        names.map(|name| name.into_string().expect("the names of cases are text")).collect();
    names.sort();
    let mut tried = 0;
    for name in names {
        let (case, files) = corpus::read(language, &name);
        let request = || case.request(&sandbox, language, files.clone());
        let mut report = execute(&sandbox, request());
        for _ in 1..USES {
            if start_of_run(&report) == Start::Warm {
                break;
            }
            wait_until_ready(&sandbox);
            report = execute(&sandbox, request());
        }
        assert_eq!(start_of_run(&report), Start::Warm, "{name}: {:?}", sandbox.pool());
        let waiting = warm_runtimes("python3");
        assert!(waiting.iter().all(|runtime| runtime.method == method), "{waiting:?}");
        case.expect.check(&report);
        tried += 1;
    }
    assert!(tried > 0, "there is no case");
}

/// Waits until the pools are full, if there are any: there is none after the first use of a runtime.
fn wait_until_ready(sandbox: &Sandbox) {
    let kinds = sandbox.pool().map(|pool| pool.warm).unwrap_or_default();
    if kinds.iter().any(|kind| kind.wanted > 0) {
        wait_until_full(sandbox);
    }
}
