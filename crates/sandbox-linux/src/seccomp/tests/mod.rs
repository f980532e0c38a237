//! Tests that concern the whole filter rather than one file of it.

mod container;
mod equivalence;
pub(super) mod interpreter;
mod kernel;
mod known_answers;
mod oracle;
mod runtimes;
