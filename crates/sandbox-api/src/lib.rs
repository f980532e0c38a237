//! What clients and the server say to each other, as plain data.
//!
//! The server reads these types, `sandbox-run --server` writes them, and the OpenAPI document is made
//! from them. Reports and events are those of the library; here they are only carried.

mod environments;
mod execute;
mod files;
mod network;
mod problem;

pub use environments::NewEnvironment;
pub use execute::{Accepted, ExecuteRequest};
pub use files::{Encoding, FileInput, InvalidContent};
pub use network::{NetworkMode, NetworkRequest};
pub use problem::{Code, Problem};
