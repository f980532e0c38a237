//! Random values from the start-up of a runtime differ between executions, except for those that forks of a zygote share.

use std::collections::BTreeSet;

use sandbox::{Request, Sandbox, Start};
use sandbox_tests::warm::{
    Way, execute, execute_warm, members, prime, start_of_run, wait_until_full,
};

use super::apart::{BOTH, ensure, with_waiting};
use super::pool::start;
use crate::table::python;

/// Everything random that a program has from its start.
const RANDOM: &str = "
import os, random, secrets, tempfile, uuid
print(random.random(), random.SystemRandom().random())
print(uuid.uuid4(), uuid.uuid1())
print(secrets.token_hex(8), os.urandom(8).hex())
print(tempfile.mktemp())
";

#[test]
fn random_numbers_differ_from_one_program_to_the_next() {
    for way in BOTH {
        let sandbox = with_waiting(way);
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            ensure(&sandbox, way);
            let report = execute_warm(&sandbox, python(RANDOM));
            for word in report.stdout.split_whitespace() {
                assert!(seen.insert(word.to_owned()), "{word} came twice, {way:?}");
            }
        }
        assert_eq!(seen.len(), 70);
    }
}

#[test]
fn runtimes_that_were_started_by_themselves_have_seeds_and_addresses_of_their_own() {
    let sandbox = with_waiting(Way::Own);
    let mut seen = BTreeSet::new();
    for _ in 0..8 {
        wait_until_full(&sandbox);
        assert!(members("python3").iter().all(|member| member.way == Way::Own));
        let report = execute_warm(&sandbox, python("print(hash('text'), id(object()))"));
        let words: Vec<_> = report.stdout.split_whitespace().map(str::to_owned).collect();
        assert!(words.into_iter().all(|word| seen.insert(word)), "{}", report.stdout);
    }
}

/// Forks of one zygote share these (docs/adr/0015); this test documents it.
#[test]
fn forks_of_a_zygote_share_seed_and_addresses_only_with_each_other() {
    let print = || python("print(hash('text'), id(object()))");
    let of_copies = |sandbox: &Sandbox| {
        ensure(sandbox, Way::Copied);
        execute_warm(sandbox, print()).stdout
    };
    let one = with_waiting(Way::Copied);
    let first = of_copies(&one);
    assert_eq!(first, of_copies(&one));
    drop(one);
    assert_ne!(first, of_copies(&with_waiting(Way::Copied)));
}

/// Nor with Node, of which none is ever copied.
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
