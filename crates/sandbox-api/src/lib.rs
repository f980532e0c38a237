//! Request, response and error types of the HTTP API.
//!
//! The server deserializes them, `sandbox-run --server` serializes them, and the OpenAPI document is generated
//! from them. Reports and events are types of the library and are not defined here.

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
