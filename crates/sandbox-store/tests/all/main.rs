//! What every store and the queue promise, held against the real thing.

mod conformance;
mod crash;
mod queue;
mod sqlite;
