//! Resolves host names to permitted addresses.
//!
//! The HTTP client connects to exactly the addresses that are returned here, so a name that resolves to something else
//! between check and use (DNS rebinding) gains nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::AddressPolicy;

/// Resolves with the system resolver and drops addresses that are not permitted.
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
            // The client sets the port.
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
