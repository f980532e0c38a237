//! The corpus once more, each program in a runtime that waited for it: what is expected of it is the same.

use sandbox::{Sandbox, Start};
use sandbox_tests::warm::{Way, execute, members, start_of_run, wait_until_full};

use crate::corpus;
use crate::program::folder;

/// A kind of runtime waits after its second use.
const USES: usize = 3;

#[test]
fn the_python_corpus_runs_warm() {
    each("python", Way::Own);
}

#[test]
fn the_python_corpus_runs_in_copies() {
    each("python", Way::Copied);
}

#[test]
fn the_javascript_corpus_runs_warm() {
    each("javascript", Way::Own);
}

#[test]
fn the_typescript_corpus_runs_warm() {
    each("typescript", Way::Own);
}

#[test]
fn the_java_corpus_runs_warm() {
    each("java", Way::Own);
}

fn each(language: &str, way: Way) {
    let sandbox = way.only().build().expect("a sandbox can be started");
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
            wait_until_some_wait(&sandbox);
            report = execute(&sandbox, request());
        }
        assert_eq!(start_of_run(&report), Start::Warm, "{name}: {:?}", sandbox.pool());
        let waiting = members("python3");
        assert!(waiting.iter().all(|member| member.way == way), "{waiting:?}");
        case.expect.check(&report);
        tried += 1;
    }
    assert!(tried > 0, "nothing was tried");
}

/// After the first use of the first kind nothing is to wait yet.
fn wait_until_some_wait(sandbox: &Sandbox) {
    let kinds = sandbox.pool().map(|pool| pool.warm).unwrap_or_default();
    if kinds.iter().any(|kind| kind.wanted > 0) {
        wait_until_full(sandbox);
    }
}
