use clap::Args;
use sandbox::Isolation;

use super::values::{IsolationOrder, parse_order};

/// What `auto` prefers.
#[derive(Clone, Debug, Args)]
pub(crate) struct OrderArgs {
    /// What --isolation auto prefers, the first that is at full function here [default: native, then the others]
    #[arg(long, value_name = "NAME,...", help_heading = "Walls", env = "SANDBOX_RUN_ISOLATION_ORDER",
          value_parser = parse_order)]
    isolation_order: Option<IsolationOrder>,

    /// Where the Docker Engine listens [default: unix:///var/run/docker.sock]
    #[arg(
        long,
        value_name = "unix:///PATH",
        help_heading = "Walls",
        env = "DOCKER_HOST",
        hide_env_values = true
    )]
    docker_host: Option<String>,
}

impl OrderArgs {
    /// Where the Docker Engine is, if somebody says so.
    pub(crate) fn docker_host(&self) -> Option<&str> {
        self.docker_host.as_deref()
    }

    /// The order of preference.
    pub(crate) fn order(&self) -> &[Isolation] {
        self.isolation_order.as_ref().map_or(Isolation::ALL, |order| &order.0)
    }

    /// What is preferred to all others.
    pub(crate) fn first(&self) -> Isolation {
        self.order().first().copied().unwrap_or(Isolation::Native)
    }
}
