//! Nothing is left of an instance that was killed or dropped.

use sandbox::{CancelToken, Ending};
use sandbox_tests::residue::Residue;

use crate::harness::{Silent, bash, create, limits, output, spec, start, with_each_backend};

#[test]
fn a_killed_instance_ends_its_processes_and_leaves_nothing() {
    with_each_backend(|backend| {
        output(create(backend, spec()).as_ref(), bash("true"));
        let before = Residue::count_at_rest();
        let instance = create(backend, spec());
        let process = start(instance.as_ref(), bash("(setsid sleep 60 &); sleep 60"));
        instance.kill().unwrap();
        let outcome = process.wait(&mut Silent, &CancelToken::new()).unwrap();
        assert_eq!(outcome.ending, Ending::Cancelled);
        drop(process);
        assert!(instance.start(bash("true"), limits()).is_err());
        assert!(instance.usage().is_err() && instance.list(None).is_err());
        instance.kill().unwrap();
        drop(instance);
        before.assert_returns("an instance was killed");
    });
}

#[test]
fn a_dropped_instance_leaves_nothing() {
    with_each_backend(|backend| {
        output(create(backend, spec()).as_ref(), bash("true"));
        let before = Residue::count_at_rest();
        for _ in 0..3 {
            let instance = create(backend, spec());
            output(instance.as_ref(), bash("echo x > file"));
            drop(start(instance.as_ref(), bash("(setsid sleep 60 &); sleep 60")));
        }
        before.assert_returns("instances were dropped");
    });
}
