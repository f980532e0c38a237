//! Runs stages through an agent inside a container, for every container runtime.
//!
//! The agent is part of this project, but the program runs beside it, possibly as the same user.
//! Therefore everything from inside is checked as if the program had sent it. Time, memory and CPU
//! time are measured from outside.

mod agent_events;
mod channel;
mod collect;
mod connection;
mod containers;
mod exec_request;
mod host;
mod inodes;
mod instance;
mod kernel;
mod pool;
mod pool_state;
mod process;
mod rootfs;
mod spec;
mod supervise;
mod volumes;
mod workspace;

pub(crate) use channel::{Channel, Received};
pub(crate) use containers::{Containers, capabilities, protections};
pub(crate) use exec_request::{AgentEnvironment, ExecEncoder};
pub(crate) use host::check_host;
pub(crate) use inodes::InodeCover;
pub(crate) use kernel::{Kernel, USER, lacks};
pub(crate) use pool::{ContainerFactory, ContainerPool};
pub(crate) use rootfs::Rootfs;
pub(crate) use spec::{ContainerSpec, MADE_INODES};
pub(crate) use supervise::{Container, is_populated};
