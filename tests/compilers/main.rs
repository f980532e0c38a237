//! Compilers under attack: by their sources, by file names, and by what an earlier execution left.
//!
//! The sources are in `hostile/`, each with a note on how it works. A compiler may say no, or reach a
//! limit, or be led to do all that a program may do inside a sandbox; the host and the next execution
//! must not notice.

#[macro_use]
mod attack;
mod host;

mod c;
mod cpp;
mod go;
mod java;
mod rust;
mod typescript;

mod breach;
mod names;

mod cache;
mod cache_keys;
mod parallel;
mod toy;

mod poison;
mod shared_cache;
