//! Sandboxes prepared ahead, as the library counts them.

use std::time::Duration;

use sandbox::{PoolStats, Sandbox};
use sandbox_tests::wait::wait_for;

use crate::table::bash;

fn run(sandbox: &Sandbox) {
    let report = sandbox.execute(bash("true").build().unwrap()).unwrap();
    assert!(report.success, "{:?}", report.error);
}

#[test]
fn without_spare_sandboxes_each_is_built_for_its_stage() {
    let sandbox = Sandbox::builder().spare_slots(0).build().unwrap();
    assert_eq!(sandbox.pool(), Some(PoolStats::default()));
    run(&sandbox);
    run(&sandbox);
    let built = PoolStats { built_claims: 2, ..PoolStats::default() };
    assert_eq!(sandbox.pool(), Some(built));
}

#[test]
fn a_spare_sandbox_is_given_away_once_and_made_again() {
    let sandbox = Sandbox::builder().spare_slots(2).build().unwrap();
    let expect = |claims| {
        let full =
            PoolStats { wanted: 2, ready: 2, prepared_claims: claims, ..PoolStats::default() };
        let is_full = || (sandbox.pool().as_ref() == Some(&full)).then_some(());
        assert!(wait_for(Duration::from_mins(1), is_full).is_some(), "{:?}", sandbox.pool());
    };
    expect(0);
    run(&sandbox);
    expect(1);
}
