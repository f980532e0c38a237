//! Attacks from warm runtimes. Their protections are set up before the program is known, and a fork of a zygote sets up
//! its own with different code.

use std::path::Path;
use std::time::Duration;

use sandbox::attack::{self, Attack, AttackHarness, AttackResult, Outcome};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{StartMethod, is_full, warm_runtimes};

const TEST_TIMEOUT: Duration = Duration::from_mins(1);

macro_rules! classes {
    ($($name:ident: $class:literal;)+) => {$(
        mod $name {
            #[test]
            fn attacks_from_a_warm_runtime_are_contained() {
                super::each($class, super::StartMethod::Fresh);
            }
            #[test]
            fn attacks_from_a_fork_of_a_zygote_are_contained() {
                super::each($class, super::StartMethod::Forked);
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

/// Runs every Python attack of a class in a warm runtime. Other limits need another pool, so each attack has a
/// harness of its own.
fn each(class: &str, method: StartMethod) {
    let attacks = attack::all().expect("the attacks can be read");
    let mut tried = 0;
    for attack in attacks.iter().filter(|attack| attack.class() == class && is_python(attack)) {
        let title = format!("warm attack {class}/{}", attack.name());
        let harness = AttackHarness::with(method.only()).expect("a harness can be set up");
        let result = try_warm(&harness, attack, method);
        match result.outcome {
            Outcome::Contained => tried += 1,
            Outcome::Skipped => skip(&title, &result.detail),
            outcome => panic!("{title}, {method:?}: {outcome}: {}", result.detail),
        }
    }
    assert!(tried > 0, "there is no attack");
}

fn try_warm(harness: &AttackHarness, attack: &Attack, method: StartMethod) -> AttackResult {
    // The second use creates the pool. An attack of two programs uses the runtime twice at once.
    while !harness.pool().is_some_and(|pool| pool.warm.iter().any(|kind| kind.wanted > 0)) {
        let first = harness.try_protected(attack);
        if first.outcome != Outcome::Contained {
            return first;
        }
    }
    wait_until_full(harness);
    let waiting = warm_runtimes("python3");
    assert!(waiting.iter().all(|runtime| runtime.method == method), "{waiting:?}");
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
