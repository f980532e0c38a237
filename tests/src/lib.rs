//! Helpers that several suites share.

pub mod backend;
pub mod cache;
pub mod image;
pub mod instances;
pub mod kernel_memory;
pub mod process;
pub mod residue;
pub mod skip;
pub mod user;
pub mod wait;
pub mod warm;
pub mod world;
