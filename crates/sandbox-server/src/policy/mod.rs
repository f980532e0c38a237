//! What the operator permits clients to ask for.

mod caches;
mod caps;
mod network;
pub(crate) mod permissions;

pub(crate) use caches::SharedCaches;
pub(crate) use caps::Caps;
pub(crate) use network::NetworkPermission;
