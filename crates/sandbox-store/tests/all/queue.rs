//! The embedded queue passes the conformance tests.

use std::sync::Arc;
use std::time::Duration;

use sandbox_store::{LocalQueue, Queue};

use crate::conformance::queue::{Backend, queue_conformance};

/// A queue in memory is ready at once: a claim is polled once.
const LOCAL: Backend = Backend { create, claim_timeout: Duration::ZERO };

fn create(capacity: usize, lease_duration: Option<Duration>) -> Arc<dyn Queue> {
    Arc::new(LocalQueue::with_lease_duration(capacity, lease_duration))
}

queue_conformance!(LOCAL);
