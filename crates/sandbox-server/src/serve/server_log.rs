//! Log lines about the start and the stop of the server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sandbox::{Isolation, Sandbox, format_duration};

use crate::state::AppState;

/// Logs settings, isolation backends with their protections, the socket and the address.
pub(super) fn started(
    state: &AppState,
    address: Option<SocketAddr>,
    socket: Option<&Path>,
    file: Option<&Path>,
) {
    let config = &state.config;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %config.data_dir.display(),
        config = file.map_or("none".to_owned(), |path| path.display().to_string()),
        concurrency = config.concurrency,
        memory_budget = %config.memory_budget,
        "settings"
    );
    for sandbox in state.sandboxes.all() {
        log_protections(sandbox);
    }
    if let Some(reason) = state.sandboxes.preferred().isolation_reason() {
        tracing::info!(reason, "default isolation backend");
    }
    // Last: tools wait for these lines to know that the server is up.
    if let Some(path) = socket {
        tracing::info!(socket = %path.display(), "listening on unix:{}", path.display());
    }
    if let Some(address) = address {
        log_address(state, address);
    }
}

fn log_address(state: &AppState, address: SocketAddr) {
    if state.keys.is_empty() {
        tracing::info!("no API keys: every local user of this machine can run code");
    } else {
        tracing::info!("clients require an API key");
    }
    let scheme = if state.config.tls.is_some() { "https" } else { "http" };
    if state.config.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "listening without TLS on an address that other machines can reach: set tls_cert and tls_key, \
             or use a TLS proxy"
        );
    }
    tracing::info!(%address, "listening on {scheme}://{address}");
}

fn log_protections(sandbox: &Sandbox) {
    let (isolation, capabilities) = (sandbox.isolation(), sandbox.capabilities());
    let names: Vec<_> =
        capabilities.enforceable.iter().map(|protection| protection.name()).collect();
    tracing::info!(%isolation, enforced = names.join(" "), "protections of this isolation backend");
    for missing in &capabilities.missing {
        // Other backends lack the same protections on every host.
        if isolation != Isolation::Native {
            continue;
        }
        if missing.protection.is_defense_in_depth() {
            tracing::info!(
                protection = missing.protection.name(),
                reason = missing.reason,
                "not available on this host: executions run without it, under the other protections"
            );
            continue;
        }
        tracing::warn!(
            protection = missing.protection.name(),
            reason = missing.reason,
            remedy = missing.remedy,
            "not available on this host: executions are refused unless allow_missing lists it"
        );
    }
}

/// Logs that a signal stops the server.
pub(super) fn stopping(signal: &str, deadline: Duration) {
    let deadline = format_duration(deadline);
    tracing::info!(signal, deadline, "stopping: no new executions; running ones may finish");
}
