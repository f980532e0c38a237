//! Every setting by name. The name is the key in `sandboxd.toml`; in capitals and with `SANDBOXD_`
//! before it, the variable.

use std::path::PathBuf;

use sandbox::{ByteSize, Isolation};

use super::origin::Origin;
use super::{ConfigError, Surroundings};

/// Before the name of every variable of ours.
pub(super) const VARIABLE_PREFIX: &str = "SANDBOXD_";

/// One thing that can be set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    default: Default,
}

/// What holds where nobody says anything.
#[derive(Clone, Copy, Debug)]
enum Default {
    Text(&'static str),
    /// Depends on the machine and its user.
    Found(fn(&Surroundings) -> Option<String>),
}

/// In the order in which `sandboxd config check` prints them.
pub(super) const SETTINGS: &[Setting] = &[
    text("listen", "127.0.0.1:8080"),
    found("data_dir", state_directory),
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
    found("concurrency", |surroundings| Some((surroundings.cores * 2).to_string())),
    found("memory_budget", memory_budget),
    text("share_per_key", "75"),
    text("queue_bound", "1000"),
    text("queue_memory", "256M"),
    text("queue_memory_per_key", "64M"),
    text("quota_per_key", "100"),
    text("isolations", "native"),
    text("docker_host", ""),
    text("docker_runtime", ""),
    text("oci_runtime", ""),
    found("isolation_order", |_| Some(isolation_order())),
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

const fn found(name: &'static str, default: fn(&Surroundings) -> Option<String>) -> Setting {
    Setting { name, default: Default::Found(default) }
}

impl Setting {
    pub(super) fn default_value(&self, surroundings: &Surroundings) -> Result<String, ConfigError> {
        match self.default {
            Default::Text(text) => Ok(text.to_owned()),
            Default::Found(find) => find(surroundings).ok_or_else(|| ConfigError::Invalid {
                origin: Origin::Default,
                name: self.name,
                reason: "this machine does not tell; set it yourself".to_owned(),
            }),
        }
    }

    /// The variable that sets it.
    pub(super) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.to_ascii_uppercase())
    }
}

/// The setting of that name.
pub(super) fn named(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// All names, for a message about one that is none.
pub(super) fn names() -> String {
    SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ")
}

/// Where programs of this user keep what should outlive a restart.
fn state_directory(surroundings: &Surroundings) -> Option<String> {
    // The specification of these variables has relative paths ignored.
    let named = surroundings.state_home.clone().filter(|path| path.is_absolute());
    let state = named.or_else(|| Some(surroundings.home.as_ref()?.join(".local/state")))?;
    Some(state.join("sandboxd").to_str()?.to_owned())
}

/// Native walls, then all others.
fn isolation_order() -> String {
    Isolation::ALL.iter().map(|isolation| isolation.name()).collect::<Vec<_>>().join(",")
}

/// Three quarters of what is free at the start: the rest is for the server itself, the page cache and
/// whatever else runs here.
fn memory_budget(surroundings: &Surroundings) -> Option<String> {
    let bytes = surroundings.available_memory? / 4 * 3;
    Some(ByteSize::mib(bytes >> 20).to_string())
}

/// Where a configuration file is looked for, the first that is there being taken.
pub(super) fn usual_files(surroundings: &Surroundings) -> Vec<PathBuf> {
    let named = surroundings.config_home.clone().filter(|path| path.is_absolute());
    let user = named.or_else(|| Some(surroundings.home.as_ref()?.join(".config")));
    let mut files = vec![PathBuf::from("sandboxd.toml")];
    files.extend(user.map(|directory| directory.join("sandboxd/sandboxd.toml")));
    files.push(PathBuf::from("/etc/sandboxd/sandboxd.toml"));
    files
}
