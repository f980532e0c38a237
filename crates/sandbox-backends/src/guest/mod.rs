//! A stage carried out by the agent inside a container, whoever built the container.
//!
//! The agent is our code, but the program runs as the same user beside it: what comes from inside is checked as if
//! the program had said it. Time, memory and CPU time are judged out here.

mod channel;
mod collect;
mod containers;
mod host;
mod inodes;
mod kernel;
mod orders;
mod pool;
mod purpose;
mod root;
mod stock;
mod volumes;
mod watch;
mod workspace;

pub(crate) use channel::{Channel, Heard};
pub(crate) use containers::{Containers, capabilities, walls};
pub(crate) use host::look_at_host;
pub(crate) use inodes::InodeCover;
pub(crate) use kernel::{Kernel, USER, lacks};
pub(crate) use orders::{InContainer, Orders};
pub(crate) use pool::{ContainerPool, Workshop};
pub(crate) use purpose::{MADE_INODES, Purpose};
pub(crate) use root::Root;
pub(crate) use watch::{Container, is_populated};
