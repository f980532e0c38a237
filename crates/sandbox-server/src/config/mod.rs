//! Settings from defaults, `sandboxd.toml`, `SANDBOXD_*` variables and flags, in order of rising precedence.
//!
//! Each source becomes a [`Layer`] of unparsed values. The layers are merged first and parsed afterwards, so that a
//! value has the same syntax in every source, and every error names the source.

mod error;
mod file;
mod host;
mod layers;
mod parse;
mod setting;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{ByteSize, ForkPolicy, Isolation, OciRuntime};
use sandbox_store::{Permissions, Retention};

use crate::callbacks::AddressPolicy;
use crate::policy::{Caps, NetworkPermission, SharedCaches};

pub(crate) use error::ConfigError;
pub(crate) use host::HostInfo;
pub(crate) use layers::{Layer, Source};

/// The parsed values of all settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The address to listen on, unless there is only the socket.
    pub(crate) listen: Option<SocketAddr>,
    /// The Unix socket to listen on.
    pub(crate) socket: Option<PathBuf>,
    /// How long the server stays without clients and executions before it stops. Without it, the server stays.
    pub(crate) idle_exit: Option<Duration>,
    /// The directory of persistent data.
    pub(crate) data_dir: PathBuf,
    /// The path of the database.
    pub(crate) database: PathBuf,
    /// The certificate and its key. Without them, the server uses plain HTTP.
    pub(crate) tls: Option<TlsFiles>,
    /// Maximum number of open connections.
    pub(crate) max_connections: usize,
    /// Time to receive the headers of a request; for the first request, including the TLS handshake.
    pub(crate) header_timeout: Duration,
    /// Time to receive the body of a request.
    pub(crate) body_timeout: Duration,
    /// How long an idle connection stays open.
    pub(crate) idle_timeout: Duration,
    /// How long a client may read nothing of a response that is ready.
    pub(crate) write_timeout: Duration,
    /// Maximum size of a request body.
    pub(crate) max_body: ByteSize,
    /// Maximum size of code and files of one execution.
    pub(crate) max_code: ByteSize,
    /// Maximum limits that a request can set.
    pub(crate) caps: Caps,
    /// Maximum number of running executions.
    pub(crate) concurrency: usize,
    /// Maximum sum of the memory limits of running executions.
    pub(crate) memory_budget: ByteSize,
    /// The percentage of both that the executions of one key can use.
    pub(crate) share_per_key: u8,
    /// Maximum number of queued executions.
    pub(crate) queue_bound: usize,
    /// Maximum size of all queued requests.
    pub(crate) queue_memory: ByteSize,
    /// Maximum size of the queued requests of one key.
    pub(crate) queue_memory_per_key: ByteSize,
    /// Maximum number of unfinished executions of one key.
    pub(crate) quota_per_key: usize,
    /// The permitted isolation backends.
    pub(crate) isolations: Vec<Isolation>,
    /// The order of preference for requests without `isolation`.
    pub(crate) isolation_order: Vec<Isolation>,
    /// The socket of the Docker Engine, unless it is the default one.
    pub(crate) docker_host: Option<String>,
    /// The runtime of the Docker Engine, unless it is the Engine's default.
    pub(crate) docker_runtime: Option<String>,
    /// The OCI runtime, unless it is the first installed one.
    pub(crate) oci_runtime: Option<OciRuntime>,
    /// Whether clients can install packages.
    pub(crate) packages: Packages,
    /// The caches that all keys share.
    pub(crate) shared_caches: SharedCaches,
    /// Permissions of all keys, besides their own.
    pub(crate) key_permissions: Permissions,
    /// Permissions of clients without a key, on a server without keys.
    pub(crate) local_permissions: Permissions,
    /// Maximum number of environments of one key.
    pub(crate) environments_per_key: usize,
    /// Maximum size of one workspace.
    pub(crate) workspace_size: ByteSize,
    /// Maximum number of workspaces of one key.
    pub(crate) workspaces_per_key: u64,
    /// Whether rate limit and quota apply to clients without a key too, which are on this machine.
    pub(crate) limit_local: bool,
    /// Whether runtimes are started ahead of requests.
    pub(crate) warm: bool,
    /// When runtimes are forked from a zygote.
    pub(crate) warm_copies: ForkPolicy,
    /// Sustained request rate of one client; 0 means no limit.
    pub(crate) requests_per_minute: u32,
    /// Burst size of the rate limit.
    pub(crate) burst: u32,
    /// Maximum time that a request waits for its report.
    pub(crate) wait_limit: Duration,
    /// Retention of finished executions and of the audit log.
    pub(crate) retention: Retention,
    /// Origins of web pages that can call the server.
    pub(crate) cors_origins: Vec<String>,
    /// The network access that requests can have.
    pub(crate) network: NetworkPermission,
    /// Directories of the host that volumes can be in.
    pub(crate) volumes_from: Vec<PathBuf>,
    /// Addresses of callbacks that are permitted besides public ones.
    pub(crate) callback_allow: AddressPolicy,
    /// The format of the log.
    pub(crate) log: LogFormat,
    /// The log filter, such as `info` or `sandboxd=debug,info`.
    pub(crate) log_filter: String,
    /// The collector of traces. Without one, there are no traces.
    pub(crate) otlp_endpoint: Option<String>,
    /// The fraction of traces to sample, from 0 to 1, unless the client decides.
    pub(crate) otlp_sample: f64,
    /// How long running executions may continue after SIGTERM.
    pub(crate) shutdown_deadline: Duration,
}

/// The paths of the server's certificate and private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The certificate, followed by intermediate certificates.
    pub(crate) certificate: PathBuf,
    /// The private key of the certificate.
    pub(crate) key: PathBuf,
}

/// Whether clients can install packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packages {
    /// From the package indexes that this host uses.
    On,
    /// Never.
    Off,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For humans.
    Pretty,
    /// One JSON object for each line.
    Json,
}

/// The merged layers.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSettings {
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// The effective value of every setting.
    pub(crate) values: Layer,
}

impl LoadedSettings {
    /// Loads and merges all layers. `file` is the argument of `--config`.
    pub(crate) fn load(
        flags: Layer,
        file: Option<&Path>,
        host: &HostInfo,
    ) -> Result<Self, ConfigError> {
        let named = file
            .map(Path::to_owned)
            .or_else(|| layers::file_variable(&host.variables).map(PathBuf::from));
        let found = || {
            setting::default_files(host).into_iter().find(|path| path.symlink_metadata().is_ok())
        };
        let (mut above, file) = if let Some(path) = named {
            (file::read(&path)?, Some(path))
        } else if let Some(path) = found() {
            (file::read_if_trusted(&path)?, Some(path))
        } else {
            (Layer::default(), None)
        };
        above.overlay(layers::variables(&host.variables)?);
        above.overlay(flags);
        let mut values = layers::defaults(host, &above)?;
        values.overlay(above);
        Ok(Self { file, values })
    }

    /// Parses every value.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        parse::config(&self.values)
    }
}

impl Config {
    /// The directory of the clients' environments.
    pub(crate) fn environments_directory(&self) -> PathBuf {
        self.data_dir.join("environments")
    }
}

impl Layer {
    /// The layer of command-line flags.
    pub(crate) fn of_flags<const N: usize>(
        flags: [(&'static str, &'static str, Option<&String>); N],
    ) -> Self {
        let mut layer = Self::default();
        for (name, flag, value) in flags {
            if let Some(value) = value {
                layer.set(name, value.clone(), Source::Flag(flag));
            }
        }
        layer
    }
}

#[cfg(test)]
mod tests;
