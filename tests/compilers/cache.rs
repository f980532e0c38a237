//! What is kept of compiled programs: when it is used, and when it must not be.

use std::time::Duration;

use sandbox::{Limits, Protection, Status};

use crate::toy::{Toy, compiled, run, toy};

#[test]
fn the_second_execution_uses_what_the_first_compiled() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    let (first, cached) = compiled(&sandbox, toy("text"));
    assert!(!cached);
    assert_eq!(compiled(&sandbox, toy("text")), (first.clone(), true));
    assert_eq!(compiled(&home.sandbox(), toy("text")), (first, true), "another process's too");
    assert_eq!(home.kept(), 1);
}

/// Ways in which a file can be damaged.
fn damage(contents: &mut Vec<u8>, how: usize) {
    let length = contents.len();
    match how {
        0 => contents[0] ^= 1,
        1 => contents[length / 2] ^= 0x80,
        2 => contents[length - 1] ^= 1,
        3 => contents.truncate(length - 1),
        4 => contents.clear(),
        _ => contents.push(0),
    }
}

#[test]
fn a_damaged_entry_is_not_used_and_is_made_anew() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    let (mut last, _) = compiled(&sandbox, toy("text"));
    let entry = home.entries().pop().unwrap();
    for how in 0..6 {
        let mut contents = std::fs::read(&entry).unwrap();
        damage(&mut contents, how);
        std::fs::write(&entry, contents).unwrap();
        let (healed, cached) = compiled(&sandbox, toy("text"));
        assert!(!cached, "damaged in way {how} and used");
        assert_ne!(healed, last, "the compiler ran again");
        assert_eq!(compiled(&sandbox, toy("text")), (healed.clone(), true), "way {how} heals");
        last = healed;
    }
    assert_eq!(home.entries(), [entry]);
}

#[test]
fn an_entry_in_the_place_of_another_is_not_used() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    compiled(&sandbox, toy("mine"));
    let mine = home.entries().pop().unwrap();
    let (theirs, _) = compiled(&sandbox, toy("theirs"));
    let place = home.entries().into_iter().find(|path| *path != mine).unwrap();
    std::fs::copy(mine, place).unwrap();
    let (output, cached) = compiled(&sandbox, toy("theirs"));
    assert!(!cached && output != theirs, "it was compiled again");
    assert!(output.contains("theirs"), "{output}");
}

#[test]
fn a_program_that_does_not_compile_is_not_kept() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    for _ in 0..2 {
        let report = run(&sandbox, toy("fail to compile"));
        assert_eq!((report.status, report.exit_code), (Status::CompileError, 3));
        assert!(!report.stages[0].cached);
    }
    assert_eq!(home.kept(), 0);
}

#[test]
fn a_compiler_that_reached_a_limit_leaves_nothing_to_keep() {
    let home = Toy::new();
    let limits = Limits::compile().with_wall_time(Duration::from_millis(300)).unwrap();
    let report = run(&home.sandbox(), toy("never end").compile_limits(limits));
    assert_eq!(report.status, Status::Timeout);
    assert_eq!(home.kept(), 0);
}

#[test]
fn what_one_compiler_made_is_not_taken_for_what_another_makes() {
    let home = Toy::new();
    let (first, _) = compiled(&home.sandbox(), toy("text"));
    assert!(first.contains("made by first"));
    home.install("second");
    let (second, cached) = compiled(&home.sandbox(), toy("text"));
    assert!(!cached && second.contains("made by second"), "{second}");
    assert_eq!(home.kept(), 2);
}

/// A server lives longer than a version of a compiler.
#[test]
fn an_update_of_the_compiler_is_noticed_by_a_sandbox_that_is_there_already() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    compiled(&sandbox, toy("text"));
    home.install("second");
    let (second, cached) = compiled(&sandbox, toy("text"));
    assert!(!cached && second.contains("made by second"), "{second}");
    // What the new compiler makes is not kept as the old one's either.
    compiled(&sandbox, toy("other"));
    home.install("third");
    let (third, cached) = compiled(&home.sandbox(), toy("other"));
    assert!(!cached && third.contains("made by third"), "{third}");
}

#[test]
fn nothing_is_kept_of_a_sandbox_with_a_wall_left_out() {
    let home = Toy::new();
    let sandbox = home.builder().without(Protection::Seccomp).build().unwrap();
    compiled(&sandbox, toy("text"));
    let (_, cached) = compiled(&sandbox, toy("text"));
    assert!(!cached);
    assert_eq!(home.kept(), 0);
}
