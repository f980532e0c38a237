//! Settings: defaults, `sandboxd.toml`, `SANDBOXD_*` variables and flags, in rising order.
//!
//! Reading and understanding are two steps. Each source becomes a [`Layer`] of texts with their origins;
//! the layers are put on top of each other; only then are the texts understood. So every message can
//! say where a value came from, and a value means the same wherever it was written.

mod error;
mod file;
mod layers;
mod origin;
mod setting;
mod surroundings;
mod tls;
mod understand;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{ByteSize, Copies, Isolation, OciRuntime};
use sandbox_store::{Permissions, Retention};

use crate::callbacks::AddressPolicy;
use crate::policy::{Caps, NetworkPermission, SharedCaches};

pub(crate) use error::ConfigError;
pub(crate) use layers::Layer;
pub(crate) use origin::Origin;
pub(crate) use surroundings::Surroundings;
pub(crate) use tls::TlsFiles;

/// Everything that can be set, checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where the server listens.
    pub(crate) listen: SocketAddr,
    /// What the server keeps lies here.
    pub(crate) data_dir: PathBuf,
    /// The file of the embedded database.
    pub(crate) database: PathBuf,
    /// What to prove with who we are; without it the server speaks plain HTTP.
    pub(crate) tls: Option<TlsFiles>,
    /// Connections that are open at once.
    pub(crate) max_connections: usize,
    /// How long the head of a request may take; for the first one, the TLS handshake included.
    pub(crate) header_timeout: Duration,
    /// How long the body of a request may take.
    pub(crate) body_timeout: Duration,
    /// How long a connection is kept for its next request.
    pub(crate) idle_timeout: Duration,
    /// How long a client may take nothing of an answer that is there for it.
    pub(crate) write_timeout: Duration,
    /// The largest body of a request.
    pub(crate) max_body: ByteSize,
    /// The most code and files in one execution.
    pub(crate) max_code: ByteSize,
    /// The largest limits that a client may set.
    pub(crate) caps: Caps,
    /// Executions that run at once.
    pub(crate) concurrency: usize,
    /// The sum of memory limits of executions that run at once.
    pub(crate) memory_budget: ByteSize,
    /// The percentage of both that the executions of one key can have.
    pub(crate) share_per_key: u8,
    /// Executions that wait at once.
    pub(crate) queue_bound: usize,
    /// Bytes of requests that wait.
    pub(crate) queue_memory: ByteSize,
    /// Bytes of requests of one key that wait.
    pub(crate) queue_memory_per_key: ByteSize,
    /// Executions of one key that wait or run at once.
    pub(crate) quota_per_key: usize,
    /// What may build the walls of executions.
    pub(crate) isolations: Vec<Isolation>,
    /// In which order they are preferred where a client leaves the choice to us.
    pub(crate) isolation_order: Vec<Isolation>,
    /// Where the Docker Engine listens, if not at its usual place.
    pub(crate) docker_host: Option<String>,
    /// Which of its runtimes builds containers, if not the one that it prefers.
    pub(crate) docker_runtime: Option<String>,
    /// What builds containers of runc's sort, if not the first that is installed.
    pub(crate) oci_runtime: Option<OciRuntime>,
    /// Whether packages are fetched for clients.
    pub(crate) packages: Packages,
    /// Which caches keys share.
    pub(crate) shared_caches: SharedCaches,
    /// Permissions that every key has, beside its own.
    pub(crate) key_permissions: Permissions,
    /// Permissions of clients without a key, of a server that has no keys.
    pub(crate) local_permissions: Permissions,
    /// Environments of one key.
    pub(crate) environments_per_key: usize,
    /// The most that one workspace holds.
    pub(crate) workspace_size: ByteSize,
    /// Workspaces of one key.
    pub(crate) workspaces_per_key: u64,
    /// Whether clients without keys, who can only be on this machine, are limited in rate and number too.
    pub(crate) limit_local: bool,
    /// Whether runtimes are started before there are programs for them.
    pub(crate) warm: bool,
    /// When they are copies of one.
    pub(crate) warm_copies: Copies,
    /// Requests of one client, in the long run.
    pub(crate) requests_per_minute: u32,
    /// Requests of one client, all at once.
    pub(crate) burst: u32,
    /// The longest that a request waits for its report.
    pub(crate) wait_limit: Duration,
    /// How long finished executions and the audit log are kept.
    pub(crate) retention: Retention,
    /// Web pages from here may call the server.
    pub(crate) cors_origins: Vec<String>,
    /// What programs may reach, if they ask for it.
    pub(crate) network: NetworkPermission,
    /// Where callbacks may go beside public addresses.
    pub(crate) callback_allow: AddressPolicy,
    /// The form of the log.
    pub(crate) log: LogFormat,
    /// Which lines the log has, as `info` or `sandboxd=debug,info`.
    pub(crate) log_filter: String,
    /// Where traces are sent; nowhere if there is none.
    pub(crate) otlp_endpoint: Option<String>,
    /// Which part of traces is sent, from 0 to 1, where a client did not decide that already.
    pub(crate) otlp_sample: f64,
    /// How long executions may go on after the server was asked to stop.
    pub(crate) shutdown_deadline: Duration,
}

/// Whether packages are fetched for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packages {
    /// From the indexes that this host is set up to use.
    On,
    /// Not at all.
    Off,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line, for programs.
    Json,
}

/// What the layers say together.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Every setting, with the layer that won.
    pub(crate) settled: Layer,
}

impl Sources {
    /// Puts the layers on top of each other. `file` is what `--config` named.
    pub(crate) fn gather(
        flags: Layer,
        file: Option<&Path>,
        surroundings: &Surroundings,
    ) -> Result<Self, ConfigError> {
        let named = file
            .map(Path::to_owned)
            .or_else(|| layers::file_variable(&surroundings.variables).map(PathBuf::from));
        let found = || {
            setting::usual_files(surroundings)
                .into_iter()
                .find(|path| path.symlink_metadata().is_ok())
        };
        let (mut above, file) = if let Some(path) = named {
            (file::read(&path)?, Some(path))
        } else if let Some(path) = found() {
            (file::read_if_trusted(&path)?, Some(path))
        } else {
            (Layer::default(), None)
        };
        above.overlay(layers::variables(&surroundings.variables)?);
        above.overlay(flags);
        let mut settled = layers::defaults(surroundings, &above)?;
        settled.overlay(above);
        Ok(Self { file, settled })
    }

    /// Understands every value.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        understand::config(&self.settled)
    }
}

impl Config {
    /// Where clients have their environments.
    pub(crate) fn environments_directory(&self) -> PathBuf {
        self.data_dir.join("environments")
    }
}

impl Layer {
    /// The layer of flags; those that were not given are left out.
    pub(crate) fn of_flags(flags: [(&'static str, &'static str, Option<&String>); 5]) -> Self {
        let mut layer = Self::default();
        for (name, flag, value) in flags {
            if let Some(value) = value {
                layer.set(name, value.clone(), Origin::Flag(flag));
            }
        }
        layer
    }
}

#[cfg(test)]
mod tests;
