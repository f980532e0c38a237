//! The table of settings. The name of a setting is its key in `sandboxd.toml`, and in upper case with the prefix
//! `SANDBOXD_` its environment variable.

use std::path::PathBuf;

use sandbox::{ByteSize, Isolation};

use super::layers::Source;
use super::{ConfigError, HostInfo};

/// The prefix of all environment variables.
pub(super) const VARIABLE_PREFIX: &str = "SANDBOXD_";

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    default: Default,
}

/// The default of a setting.
#[derive(Clone, Copy, Debug)]
enum Default {
    Text(&'static str),
    /// Depends on the host and the user.
    Detected(fn(&HostInfo) -> Option<String>),
}

/// All settings, in the order in which `sandboxd config check` prints them.
pub(super) const SETTINGS: &[Setting] = &[
    text("listen", "127.0.0.1:8080"),
    text("socket", ""),
    text("idle_exit", "off"),
    detected("data_dir", state_directory),
    text("role", "all"),
    text("database", "embedded"),
    text("queue", "embedded"),
    text("tls_cert", ""),
    text("tls_key", ""),
    text("max_connections", "1024"),
    text("header_timeout", "10s"),
    text("body_timeout", "30s"),
    text("idle_timeout", "75s"),
    text("write_timeout", "30s"),
    text("max_body", "10M"),
    text("max_code", "1M"),
    text("max_timeout", "5m"),
    text("max_memory", "memory_budget"),
    text("max_disk", "1G"),
    text("max_output", "16M"),
    text("max_pids", "1024"),
    text("max_open_files", "256"),
    detected("concurrency", |host| Some((host.cores * 2).to_string())),
    detected("memory_budget", memory_budget),
    text("share_per_key", "75"),
    text("queue_bound", "1000"),
    text("queue_memory", "256M"),
    text("queue_memory_per_key", "64M"),
    text("quota_per_key", "100"),
    text("isolations", "native"),
    text("docker_host", ""),
    text("docker_runtime", ""),
    text("oci_runtime", ""),
    detected("isolation_order", |_| Some(isolation_order())),
    text("packages", "on"),
    text("shared_compile_cache", "off"),
    text("shared_packages", "off"),
    text("key_permissions", ""),
    text("local_permissions", "network,packages"),
    text("environments_per_key", "20"),
    text("workspace_size", "256M"),
    text("workspaces_per_key", "20"),
    text("requests_per_minute", "6000"),
    text("burst", "1000"),
    text("limit_local", "off"),
    text("warm", "on"),
    text("warm_copies", "hurry"),
    text("wait_limit", "60s"),
    text("retention_age", "168h"),
    text("retention_size", "1G"),
    text("retention_size_per_key", "256M"),
    text("retention_count_per_key", "100000"),
    text("audit_retention", "2160h"),
    text("audit_entries", "1000000"),
    text("cors_origins", ""),
    text("network_allowlist", "on"),
    text("network_allow", ""),
    text("volumes_from", ""),
    text("callback_allow", ""),
    text("log", "pretty"),
    text("log_filter", "info"),
    text("otlp_endpoint", ""),
    text("otlp_sample", "1"),
    text("shutdown_deadline", "10s"),
];

const fn text(name: &'static str, default: &'static str) -> Setting {
    Setting { name, default: Default::Text(default) }
}

const fn detected(name: &'static str, default: fn(&HostInfo) -> Option<String>) -> Setting {
    Setting { name, default: Default::Detected(default) }
}

impl Setting {
    pub(super) fn default_value(&self, host: &HostInfo) -> Result<String, ConfigError> {
        match self.default {
            Default::Text(text) => Ok(text.to_owned()),
            Default::Detected(detect) => detect(host).ok_or_else(|| ConfigError::Invalid {
                set_by: Source::Default,
                name: self.name,
                reason: "cannot detect a default on this host; set it explicitly".to_owned(),
            }),
        }
    }

    /// The environment variable that sets it.
    pub(super) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.to_ascii_uppercase())
    }
}

/// The setting with this name.
pub(super) fn named(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// All names, for error messages.
pub(super) fn names() -> String {
    SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ")
}

/// The directory for persistent state of this user (XDG Base Directory Specification).
fn state_directory(host: &HostInfo) -> Option<String> {
    // The specification says to ignore relative paths.
    let named = host.state_home.clone().filter(|path| path.is_absolute());
    let state = named.or_else(|| Some(host.home.as_ref()?.join(".local/state")))?;
    Some(state.join("sandboxd").to_str()?.to_owned())
}

/// All isolation backends, native first.
fn isolation_order() -> String {
    Isolation::ALL.iter().map(|isolation| isolation.name()).collect::<Vec<_>>().join(",")
}

/// Three quarters of the memory that is available at the start. The rest is for the server, the page cache and other
/// processes.
fn memory_budget(host: &HostInfo) -> Option<String> {
    let bytes = host.available_memory? / 4 * 3;
    Some(ByteSize::mib(bytes >> 20).to_string())
}

/// The default locations of the configuration file. The first that exists is read.
pub(super) fn default_files(host: &HostInfo) -> Vec<PathBuf> {
    let named = host.config_home.clone().filter(|path| path.is_absolute());
    let user = named.or_else(|| Some(host.home.as_ref()?.join(".config")));
    let mut files = vec![PathBuf::from("sandboxd.toml")];
    files.extend(user.map(|directory| directory.join("sandboxd/sandboxd.toml")));
    files.push(PathBuf::from("/etc/sandboxd/sandboxd.toml"));
    files
}
