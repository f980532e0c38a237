//! Tests of the whole filter.

mod container;
mod equivalence;
pub(super) mod interpreter;
mod kernel;
mod known_answers;
mod oracle;
mod runtimes;
