use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Limits of the connections of clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    pub(super) connections: usize,
    pub(super) header_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) write_timeout: Duration,
}

impl ConnectionLimits {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            connections: config.max_connections,
            header_timeout: config.header_timeout,
            idle_timeout: config.idle_timeout,
            write_timeout: config.write_timeout,
        }
    }
}

/// Raises the soft limit of open files to the hard limit: each connection uses a descriptor. The low default is for
/// programs that use `select`. Sandboxes have a limit of their own.
pub(super) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, limit = ?limit.current, "failed to raise the limit of open files");
    }
}
