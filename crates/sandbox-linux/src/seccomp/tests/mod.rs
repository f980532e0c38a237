//! Tests that concern the whole filter rather than one file of it.

mod container;
mod equivalence;
pub(super) mod interpreter;
mod kernel;
mod known_answers;
mod oracle;
mod runtimes;

use super::{Affinity, DeniedAction, FilterOptions, NetworkKind};

/// The usual options, with denied calls answered by `denied`.
fn options(denied: DeniedAction) -> FilterOptions {
    FilterOptions { denied, affinity: Affinity::Free, network: NetworkKind::None }
}
