//! What names stand for, as far as callbacks may go there.
//!
//! The client connects to the very addresses that are given back here. A name that stands for one thing
//! when it is checked and for another when it is used gains nothing: both are one.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::AddressPolicy;

/// Asks the system, and leaves out what is not permitted.
pub(super) struct Resolver {
    policy: Arc<AddressPolicy>,
}

impl Resolver {
    pub(super) fn new(policy: Arc<AddressPolicy>) -> Self {
        Self { policy }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            // The port is put in later.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut permitted: Vec<SocketAddr> = Vec::new();
            let mut refused = None;
            for address in found {
                match policy.check(address.ip()) {
                    Ok(()) => permitted.push(address),
                    Err(refusal) => refused = Some(refusal),
                }
            }
            match refused {
                Some(refusal) if permitted.is_empty() => Err(refusal.into()),
                _ => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}
