//! A client of the HTTP API of sandboxd.
//!
//! [`Client::execute_streaming`] submits a request and [`Client::follow_stream`] passes on its events until the report,
//! reconnecting as often as needed. Calls block. Redirects and proxies are not used, so code and API key reach only the server that
//! was named.

mod client;
mod error;
mod events;
mod follow;
mod runtimes;
mod socket;
mod sse;
mod stream;
#[cfg(feature = "https")]
mod tls;
mod url;

pub use client::{Client, ClientError, MAX_ATTEMPTS, Timeouts};
pub use error::Error;
pub use events::{InvalidEvent, StreamMessage, parse_event};
pub use runtimes::Runtime;
pub use stream::Events;
#[cfg(feature = "https")]
pub use tls::NoTrustedCertificates;
pub use url::{ApiKey, InvalidKey, InvalidServerUrl, ServerUrl};
