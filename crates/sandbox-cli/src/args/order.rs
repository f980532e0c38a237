use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use sandbox::{Isolation, OciRuntime, SandboxBuilder};

use super::values::{IsolationOrder, parse_order};

/// What `auto` prefers, and what builds containers.
#[derive(Clone, Debug, Args)]
pub(crate) struct OrderArgs {
    /// What --isolation auto prefers; one that enforces less than another before it is not taken [default: native, then the others]
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

    /// Which of the Docker Engine's runtimes builds containers, as in runsc [default: the one that the Engine prefers]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Walls",
        env = "SANDBOX_RUN_DOCKER_RUNTIME",
        hide_env_values = true
    )]
    docker_runtime: Option<String>,

    /// What builds the containers of --isolation runc [default: the first of runc and crun that is installed]
    #[arg(
        long,
        value_name = "runc|crun|/PATH",
        help_heading = "Walls",
        env = "SANDBOX_RUN_OCI_RUNTIME",
        hide_env_values = true
    )]
    oci_runtime: Option<OciRuntime>,
}

/// Refuses what would say how this host builds walls where a server builds them: an option that was typed must count. What
/// the environment says is for other commands too.
pub(super) fn refuse_with_server(matches: &ArgMatches) -> Result<(), clap::Error> {
    let options = [
        ("isolation_order", "--isolation-order"),
        ("docker_host", "--docker-host"),
        ("docker_runtime", "--docker-runtime"),
        ("oci_runtime", "--oci-runtime"),
    ];
    let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match options.iter().find(|(id, _)| is_typed(id)) {
        Some((_, option)) if matches.contains_id("server") => {
            let words = format!("{option} does not go with --server: its walls are its own\n");
            Err(clap::Error::raw(ErrorKind::ArgumentConflict, words))
        }
        _ => Ok(()),
    }
}

impl OrderArgs {
    /// Sets up what builds containers, as far as somebody says so.
    pub(crate) fn set_up(&self, mut builder: SandboxBuilder) -> SandboxBuilder {
        if let Some(host) = &self.docker_host {
            builder = builder.docker_host(host);
        }
        if let Some(name) = &self.docker_runtime {
            builder = builder.docker_runtime(name);
        }
        if let Some(runtime) = &self.oci_runtime {
            builder = builder.oci_runtime(runtime.clone());
        }
        builder
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
