//! Callbacks: sends the report of an execution to the URL that its client named.
//!
//! A callback is stored with the execution when that is accepted ([`destination`]), and is due when the execution has
//! finished. [`deliver`] finds and sends what is due, [`schedule`] has the delays before retries, [`in_flight`] the
//! limits on concurrent deliveries. Delivery is at least once; the receiver can recognize duplicates by the id.
//!
//! Receiver and URL are untrusted. [`destination`], [`resolve`] and [`address`] keep the server from sending into
//! networks that only it can reach: a connection is made only to an address that was checked.

mod address;
mod deliver;
mod destination;
mod in_flight;
mod resolve;
mod schedule;
mod secret;
mod send;

#[cfg(test)]
mod tests;

pub(crate) use address::AddressPolicy;
pub(crate) use deliver::start;
pub(crate) use destination::parse_destination;
pub(crate) use secret::{CallbackSecret, CallbackSecrets};
