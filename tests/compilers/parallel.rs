//! The same program from several threads and several processes' worth of sandboxes at the same time.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use crate::toy::{Toy, compiled, toy};

const THREADS: usize = 4;

#[test]
fn executions_at_the_same_time_leave_one_entry_that_all_use() {
    let home = Toy::new();
    let sandboxes = [home.sandbox(), home.sandbox()];
    let start = Barrier::new(sandboxes.len() * THREADS);
    let outputs: BTreeSet<String> = thread::scope(|scope| {
        let execute = |sandbox| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                compiled(sandbox, toy("text")).0
            })
        };
        let threads = sandboxes.iter().flat_map(|sandbox| (0..THREADS).map(move |_| sandbox));
        let threads: Vec<_> = threads.map(execute).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for output in &outputs {
        assert!(output.starts_with("made by first at ") && output.ends_with("main.toy:text\n"));
    }
    assert_eq!(home.kept(), 1);
    for sandbox in &sandboxes {
        let (output, cached) = compiled(sandbox, toy("text"));
        assert!(cached && outputs.contains(&output), "{output} is none of {outputs:?}");
    }
}

#[test]
fn different_programs_at_the_same_time_are_kept_apart() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    let execute = |number: usize| {
        let text = format!("program {number}");
        let (output, _) = compiled(&sandbox, toy(&text));
        assert!(output.ends_with(&format!("main.toy:{text}\n")), "{output}");
        (text, output)
    };
    let outputs: Vec<(String, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2 * THREADS).map(|n| scope.spawn(move || execute(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(home.kept(), 2 * THREADS as u64);
    for (text, output) in outputs {
        assert_eq!(compiled(&sandbox, toy(&text)), (output, true));
    }
}
