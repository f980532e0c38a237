//! Tests of the store and the queue through their public API.

mod conformance;
mod crash;
mod queue;
mod sqlite;
