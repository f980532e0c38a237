//! Attacks from runtimes that waited for them. Their protections were set up before there was a program, and those
//! of a copy by other code than those of every other program: they have to hold as well.

use std::path::Path;
use std::time::Duration;

use sandbox::attack::{self, Attack, AttackHarness, AttackResult, Outcome};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{Way, is_full, members};

const TEST_TIMEOUT: Duration = Duration::from_mins(1);

macro_rules! classes {
    ($($name:ident: $class:literal;)+) => {$(
        mod $name {
            #[test]
            fn attacks_from_a_warm_runtime_are_contained() {
                super::each($class, super::Way::Own);
            }
            #[test]
            fn attacks_from_a_fork_of_a_zygote_are_contained() {
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
fn every_class_with_python_attacks_is_tested() {
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
/// kind of runtime, so each has an harness of its own: all that waits there waits for it.
fn each(class: &str, way: Way) {
    let attacks = attack::all().expect("the attacks can be read");
    let mut tried = 0;
    for attack in attacks.iter().filter(|attack| attack.class() == class && is_python(attack)) {
        let title = format!("warm attack {class}/{}", attack.name());
        let harness = AttackHarness::with(way.only()).expect("an harness can be set up");
        let result = try_warm(&harness, attack, way);
        match result.outcome {
            Outcome::Contained => tried += 1,
            Outcome::Skipped => skip(&title, &result.detail),
            outcome => panic!("{title}, {way:?}: {outcome}: {}", result.detail),
        }
    }
    assert!(tried > 0, "nothing was tried");
}

fn try_warm(harness: &AttackHarness, attack: &Attack, way: Way) -> AttackResult {
    // One that consists of two programs needs to be tried once only.
    while !harness.pool().is_some_and(|pool| pool.warm.iter().any(|kind| kind.wanted > 0)) {
        let first = harness.try_protected(attack);
        if first.outcome != Outcome::Contained {
            return first;
        }
    }
    wait_until_full(harness);
    let waiting = members("python3");
    assert!(waiting.iter().all(|member| member.way == way), "{waiting:?}");
    let before = hits(harness);
    let result = harness.try_protected(attack);
    assert!(hits(harness) > before, "it did not start warm: {:?}", harness.pool());
    result
}

fn wait_until_full(harness: &AttackHarness) {
    let full = wait_for(TEST_TIMEOUT, || is_full(&harness.pool()?).then_some(()));
    assert!(full.is_some(), "{:?}", harness.pool());
}

fn hits(harness: &AttackHarness) -> u64 {
    harness.pool().map_or(0, |pool| pool.warm.iter().map(|kind| kind.hits).sum())
}
