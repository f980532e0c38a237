//! Real programs in real languages, with exact expected outcomes.
//!
//! Each holds under every backend that `sandbox_tests::backend` lists. A toolchain that is missing is a
//! failure here: `scripts/setup test` installs them.

mod program;

mod cached;
mod corpus;
mod hello;
mod matrix;
mod projects;
mod warm;
