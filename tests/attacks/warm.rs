//! Attacks from runtimes that waited for them. Their walls were put up before there was a program, and those
//! of a copy by other code than those of every other program: they have to hold as well.

use std::path::Path;
use std::time::Duration;

use sandbox::attack::{self, Arena, Attack, AttackResult, Outcome};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{Way, is_full, members};

const PATIENCE: Duration = Duration::from_mins(1);

macro_rules! classes {
    ($($name:ident: $class:literal;)+) => {$(
        mod $name {
            #[test]
            fn hold_when_started_by_itself() {
                super::each($class, super::Way::Own);
            }
            #[test]
            fn hold_when_copied() {
                super::each($class, super::Way::Copied);
            }
        }
    )+};
}

classes! {
    escape: "escape";
    host_leak: "host-leak";
    privilege: "privilege";
    resources: "resources";
    cross_run: "cross-run";
    output_files: "output-files";
    descriptors: "descriptors";
    supervisor: "supervisor";
}

#[test]
fn no_class_with_attacks_in_python_is_left_out() {
    let here = include_str!("warm.rs");
    for attack in attack::all().expect("the attacks can be read") {
        if is_python(&attack) {
            assert!(here.contains(&format!("\"{}\";", attack.class())), "{}", attack.class());
        }
    }
}

fn is_python(attack: &Attack) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../attacks").join(attack.class());
    folder.join(format!("{}.py", attack.name())).exists()
}

/// Tries every attack of a class that is written in Python, each warm. What differs in limits is another
/// kind of runtime, so each has an arena of its own: all that waits there waits for it.
fn each(class: &str, way: Way) {
    let attacks = attack::all().expect("the attacks can be read");
    let mut tried = 0;
    for attack in attacks.iter().filter(|attack| attack.class() == class && is_python(attack)) {
        let title = format!("warm attack {class}/{}", attack.name());
        let arena = Arena::with(way.only()).expect("an arena can be set up");
        let result = try_warm(&arena, attack, way);
        match result.outcome {
            Outcome::Contained => tried += 1,
            Outcome::Skipped => skip(&title, &result.detail),
            outcome => panic!("{title}, {way:?}: {outcome}: {}", result.detail),
        }
    }
    assert!(tried > 0, "nothing was tried");
}

fn try_warm(arena: &Arena, attack: &Attack, way: Way) -> AttackResult {
    // One that consists of two programs needs to be tried once only.
    while !arena.pool().is_some_and(|pool| pool.warm.iter().any(|kind| kind.wanted > 0)) {
        let first = arena.try_walled(attack);
        if first.outcome != Outcome::Contained {
            return first;
        }
    }
    wait_until_full(arena);
    let waiting = members("python3");
    assert!(waiting.iter().all(|member| member.way == way), "{waiting:?}");
    let before = hits(arena);
    let result = arena.try_walled(attack);
    assert!(hits(arena) > before, "it did not start warm: {:?}", arena.pool());
    result
}

fn wait_until_full(arena: &Arena) {
    let full = wait_for(PATIENCE, || is_full(&arena.pool()?).then_some(()));
    assert!(full.is_some(), "{:?}", arena.pool());
}

fn hits(arena: &Arena) -> u64 {
    arena.pool().map_or(0, |pool| pool.warm.iter().map(|kind| kind.hits).sum())
}
