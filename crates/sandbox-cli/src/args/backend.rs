//! Options that select and configure isolation backends, for `run` and `doctor`.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use sandbox::{Isolation, OciRuntime, SandboxBuilder};

use super::values::{IsolationOrder, parse_order};

/// Help heading of the options about isolation.
pub(super) const ISOLATION: &str = "Isolation and network";

/// Which isolation backends to use, and what creates containers.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackendArgs {
    /// Set the order in which --isolation auto tries backends [default: native, then the others]
    ///
    /// A backend that enforces less than an earlier one in the order is not taken.
    #[arg(long, value_name = "NAME,...", help_heading = ISOLATION, env = "SANDBOX_RUN_ISOLATION_ORDER",
          value_parser = parse_order)]
    isolation_order: Option<IsolationOrder>,

    /// Set the socket of the Docker Engine [default: unix:///var/run/docker.sock]
    #[arg(long, value_name = "unix:///PATH", help_heading = ISOLATION, env = "DOCKER_HOST",
          hide_env_values = true)]
    docker_host: Option<String>,

    /// Set the runtime of the Docker Engine, such as runsc [default: the Engine's default]
    #[arg(long, value_name = "NAME", help_heading = ISOLATION, env = "SANDBOX_RUN_DOCKER_RUNTIME",
          hide_env_values = true)]
    docker_runtime: Option<String>,

    /// Set the OCI runtime of --isolation runc [default: runc, or crun if only that is installed]
    #[arg(long, value_name = "runc|crun|/PATH", help_heading = ISOLATION, env = "SANDBOX_RUN_OCI_RUNTIME",
          hide_env_values = true)]
    oci_runtime: Option<OciRuntime>,
}

/// Rejects backend options together with --server, because the server has its own and would ignore them. Values from
/// the environment are accepted: they are meant for other commands too.
pub(super) fn reject_with_server(matches: &ArgMatches) -> Result<(), clap::Error> {
    let options = [
        ("isolation_order", "--isolation-order"),
        ("docker_host", "--docker-host"),
        ("docker_runtime", "--docker-runtime"),
        ("oci_runtime", "--oci-runtime"),
    ];
    let is_on_command_line = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match options.iter().find(|(id, _)| is_on_command_line(id)) {
        Some((_, option)) if matches.contains_id("server") => {
            let message = format!(
                "{option} cannot be used with --server: the server configures its own backends\n"
            );
            Err(clap::Error::raw(ErrorKind::ArgumentConflict, message))
        }
        _ => Ok(()),
    }
}

impl BackendArgs {
    /// Passes the container settings on to the builder; unset ones keep the library's defaults.
    pub(crate) fn apply(&self, mut builder: SandboxBuilder) -> SandboxBuilder {
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

    /// The backends in order of preference.
    pub(crate) fn isolation_order(&self) -> &[Isolation] {
        self.isolation_order.as_ref().map_or(Isolation::ALL, |order| &order.0)
    }

    /// The most preferred backend.
    pub(crate) fn first(&self) -> Isolation {
        self.isolation_order().first().copied().unwrap_or(Isolation::Native)
    }
}
