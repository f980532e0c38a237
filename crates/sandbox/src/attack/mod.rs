//! Hostile programs that the sandbox must contain, and a harness that runs them.
//!
//! They are in the folder `attacks` of the source tree and are part of the library, so that everybody can run them on their
//! own host with `sandbox-run doctor --attack`. With every protection enabled each attack must fail. The tests also disable
//! the one protection that stops it, and then the same program must succeed: otherwise its failure would prove nothing.

mod list;

mod entries;
mod header;
mod limits;

mod canaries;
mod harness;
mod shm_holder;

mod judge;
mod result;

pub use canaries::CanaryError;
pub use entries::HeaderError;
pub use harness::{AttackError, AttackHarness};
pub use list::{Attack, all};
pub use result::{AttackResult, Outcome};

/// Runs every attack with every protection enabled, one after the other, and calls `on_result` for each.
pub fn run_all(on_result: &mut dyn FnMut(&AttackResult)) -> Result<Vec<AttackResult>, AttackError> {
    let attacks = all()?;
    let harness = AttackHarness::new()?;
    let mut results = Vec::with_capacity(attacks.len());
    for attack in &attacks {
        let result = harness.try_protected(attack);
        on_result(&result);
        results.push(result);
    }
    Ok(results)
}
