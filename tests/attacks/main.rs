//! Every attack in a pair: contained with all walls up, successful with its own walls taken away.
//! Either half alone proves nothing.

use sandbox::attack::{self, AttackHarness, Outcome};
use sandbox_tests::skip::skip;

mod containers;
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
    let walled = harness.try_protected(attack);
    match walled.outcome {
        Outcome::Contained => {}
        Outcome::Skipped => return skip(&title, &walled.detail),
        outcome => panic!("with every wall up: {outcome}: {}", walled.detail),
    }
    if attack.protections().is_empty() {
        return;
    }
    let open = harness.try_unprotected(attack).unwrap();
    match open.outcome {
        Outcome::Breached => {}
        Outcome::Skipped => skip(&title, &open.detail),
        outcome => panic!("without {}: {outcome}: {}", open.protections, open.detail),
    }
}
