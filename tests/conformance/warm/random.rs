//! Random values from the start-up of a runtime differ between executions, except for those that forks of a zygote share.

use std::collections::BTreeSet;

use sandbox::{Request, Sandbox, Start};
use sandbox_tests::warm::{
    StartMethod, execute, execute_warm, prime, start_of_run, wait_until_full, warm_runtimes,
};

use super::apart::{BOTH, ensure, with_warm_runtimes};
use super::pool::start;
use crate::table::python;

/// Prints random values from every source that a runtime may seed at its start.
const RANDOM: &str = "
import os, random, secrets, tempfile, uuid
print(random.random(), random.SystemRandom().random())
print(uuid.uuid4(), uuid.uuid1())
print(secrets.token_hex(8), os.urandom(8).hex())
print(tempfile.mktemp())
";

#[test]
fn random_numbers_differ_from_one_program_to_the_next() {
    for method in BOTH {
        let sandbox = with_warm_runtimes(method);
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            ensure(&sandbox, method);
            let report = execute_warm(&sandbox, python(RANDOM));
            for word in report.stdout.split_whitespace() {
                assert!(seen.insert(word.to_owned()), "{word} came twice, {method:?}");
            }
        }
        assert_eq!(seen.len(), 70);
    }
}

#[test]
fn fresh_runtimes_have_different_seeds_and_addresses() {
    let sandbox = with_warm_runtimes(StartMethod::Fresh);
    let mut seen = BTreeSet::new();
    for _ in 0..8 {
        wait_until_full(&sandbox);
        assert!(
            warm_runtimes("python3").iter().all(|runtime| runtime.method == StartMethod::Fresh)
        );
        let report = execute_warm(&sandbox, python("print(hash('text'), id(object()))"));
        let words: Vec<_> = report.stdout.split_whitespace().map(str::to_owned).collect();
        assert!(words.into_iter().all(|word| seen.insert(word)), "{}", report.stdout);
    }
}

/// Forks of one zygote share these (docs/adr/0015); this test documents it.
#[test]
fn forks_of_a_zygote_share_seed_and_addresses_only_with_each_other() {
    let print = || python("print(hash('text'), id(object()))");
    let of_forks = |sandbox: &Sandbox| {
        ensure(sandbox, StartMethod::Forked);
        execute_warm(sandbox, print()).stdout
    };
    let one = with_warm_runtimes(StartMethod::Forked);
    let first = of_forks(&one);
    assert_eq!(first, of_forks(&one));
    drop(one);
    assert_ne!(first, of_forks(&with_warm_runtimes(StartMethod::Forked)));
}

/// Node is never forked.
#[test]
fn warm_nodes_have_different_random_numbers() {
    let sandbox = start();
    let code = "console.log(Math.random(), crypto.randomUUID(), require('crypto').randomBytes(8).toString('hex'))";
    let request = || Request::builder("javascript").code(code);
    prime(&sandbox, request);
    let mut seen = BTreeSet::new();
    for _ in 0..6 {
        wait_until_full(&sandbox);
        let report = execute(&sandbox, request());
        assert_eq!(start_of_run(&report), Start::Warm);
        for word in report.stdout.split_whitespace() {
            assert!(seen.insert(word.to_owned()), "{word} came twice");
        }
    }
}
