//! The protections of an ordinary user are set up differently from root's, and must hold as well.

use sandbox::attack::{self, AttackResult, Outcome};
use sandbox_tests::user::as_ordinary_user;

#[test]
fn every_attack_is_contained_for_an_ordinary_user() {
    as_ordinary_user("ordinary_user::every_attack_is_contained_for_an_ordinary_user", || {
        let results = attack::run_all(&mut |_| {}).unwrap();
        let failed: Vec<&AttackResult> =
            results.iter().filter(|result| !result.outcome.is_fine()).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        // Without cgroups some limits cannot be held, and their attacks are not tried.
        let tried = results.iter().filter(|result| result.outcome == Outcome::Contained).count();
        assert!(tried * 10 >= results.len() * 8, "only {tried} of {} were tried", results.len());
    });
}
