//! Callbacks: the report of an execution is sent to where its client wants it.
//!
//! What was promised lies in the store from the moment the execution is accepted ([`promise`]), and is due
//! when the execution is over. [`deliver`] looks for what is due and sends it, [`schedule`] says when to
//! try again, [`under_way`] how much at once. A callback goes out until a receiver takes it, so one may
//! come twice; its id tells.
//!
//! The receiver is a stranger, and where it is was chosen by one. So [`destination`] and [`address`] keep
//! the server from being sent into networks that only it can reach: names are resolved by [`resolve`],
//! and a connection is made to no other address than one that was checked.

mod address;
mod deliver;
mod destination;
mod resolve;
mod schedule;
mod secret;
mod send;
mod under_way;

#[cfg(test)]
mod tests;

pub(crate) use address::AddressPolicy;
pub(crate) use deliver::start;
pub(crate) use destination::promise;
pub(crate) use secret::{CallbackSecret, CallbackSecrets};
