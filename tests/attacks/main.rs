//! Every attack as a pair of tests: contained with all protections on, successful with its own protections off.
//! Either half alone proves nothing.

use sandbox::attack::{self, AttackHarness, Outcome};
use sandbox_tests::skip::skip;

mod containers;
mod heavy_owner;
mod neighbours;
mod ordinary_user;
mod warm;

include!(concat!(env!("OUT_DIR"), "/attacks.rs"));

fn pair(class: &str, name: &str) {
    let attacks = attack::all().unwrap();
    let attack =
        attacks.iter().find(|attack| (attack.class(), attack.name()) == (class, name)).unwrap();
    let title = format!("attack {class}/{name}");
    let harness = AttackHarness::new().unwrap();
    let protected = harness.try_protected(attack);
    match protected.outcome {
        Outcome::Contained => {}
        Outcome::Skipped => return skip(&title, &protected.detail),
        outcome => panic!("with every protection on: {outcome}: {}", protected.detail),
    }
    if attack.protections().is_empty() {
        return;
    }
    let unprotected = harness.try_unprotected(attack).unwrap();
    match unprotected.outcome {
        Outcome::Breached => {}
        Outcome::Skipped => skip(&title, &unprotected.detail),
        outcome => panic!("without {}: {outcome}: {}", unprotected.protections, unprotected.detail),
    }
}
