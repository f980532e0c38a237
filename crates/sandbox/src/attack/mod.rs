//! Hostile programs that the sandbox has to contain, and a place to try them in.
//!
//! They lie in the folder `attacks` of the source tree and are part of the library, so that anybody
//! can try them on their own host: `sandbox-run doctor --attack` does. With every wall up each of them
//! has to fail. The tests also take away the one wall that stops it, and there the same program has
//! to succeed: otherwise its failure would prove nothing.

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

/// Tries every attack with every wall up, one after the other, and tells each result as it comes.
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
