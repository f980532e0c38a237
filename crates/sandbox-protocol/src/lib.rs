//! The messages between the processes of a sandbox, and the one codec they are written with.
//!
//! | module | from → to | carried by |
//! |---|---|---|
//! | [`launcher`] | supervisor → launcher | datagrams |
//! | [`exec`] | supervisor → init and stub | datagrams; large requests in a sealed memory file |
//! | [`notice`] | launcher, init and stub → supervisor | datagrams |
//! | [`agent`] | supervisor ↔ agent in a container | two byte streams, cut into [`frame`]s |
//! | [`zygote`] | supervisor ↔ zygote and its forks | datagrams |
//!
//! Both ends of every channel come from one build, so there is no version to negotiate. The agent's end is
//! nevertheless hostile: a program that takes over its container can send anything. Every decoder therefore
//!
//! * returns an error on malformed input and never panics,
//! * allocates no more than a constant factor of the bytes it was given, and
//! * accepts exactly the bytes that the encoder produces: decoding and encoding again yields the input.
//!
//! `tests/roundtrip.rs` and the targets in `fuzz/` hold these three promises.
//!
//! There are no dependencies, because the agent and the zygote library are compiled without Cargo (see `build.rs` of
//! sandbox-linux), and no standard library, because the zygote library has none.

#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

mod codec;
pub mod zygote;

#[cfg(feature = "alloc")]
pub mod agent;
#[cfg(feature = "alloc")]
pub mod exec;
#[cfg(feature = "alloc")]
pub mod frame;
#[cfg(feature = "alloc")]
pub mod launcher;
#[cfg(feature = "alloc")]
mod message;
#[cfg(feature = "alloc")]
pub mod notice;

pub use codec::{DecodeError, Reader};
#[cfg(feature = "alloc")]
pub use message::{Message, Writer};

/// Maximum size of a datagram. A larger message travels in a memory file that is attached to a datagram.
pub const MAX_DATAGRAM_BYTES: usize = 16 * 1024;
