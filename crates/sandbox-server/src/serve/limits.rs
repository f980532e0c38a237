use std::time::Duration;

use crate::config::Config;

/// What clients may take of the server's time and room, whatever they ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) header_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) write_timeout: Duration,
}

impl Limits {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            connections: config.max_connections,
            header_timeout: config.header_timeout,
            idle_timeout: config.idle_timeout,
            write_timeout: config.write_timeout,
        }
    }
}
