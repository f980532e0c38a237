//! The structure of the source: crates depend only on the crates below them (`crates`), and the top-level modules of a crate
//! have no dependency cycle (`modules`). A module outside every cycle can be read, tested and changed without the others.
//! The documents name what exists: every module is in the map (`map`), and every link leads to a file (`links`).
//!
//! A small reader (`tokens`, `source`) finds the `crate::`, `super::` and `self::` paths of every file; a full Rust parser
//! is not needed for that. Test modules are ignored.

mod crates;
mod graph;
mod links;
mod map;
mod modules;
mod source;
mod tokens;
