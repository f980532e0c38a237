//! What the log says about the server as a whole.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sandbox::{Isolation, Sandbox, format_duration};

use crate::state::AppState;

/// The first lines: where it is, what it keeps where, and which walls stand.
pub(super) fn started(state: &AppState, address: SocketAddr, file: Option<&Path>) {
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
        walls(sandbox);
    }
    if let Some(reason) = state.sandboxes.preferred().isolation_reason() {
        tracing::info!(reason, "what executions get that do not name an isolation");
    }
    if state.keys.is_empty() {
        tracing::info!("there are no API keys: every local user of this machine may run code");
    } else {
        tracing::info!("clients need an API key");
    }
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    if config.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "other machines reach this server without TLS: keys and code can be read on the way; set \
             tls_cert and tls_key, unless a proxy does it"
        );
    }
    // Last, since whoever waits for the server waits for this line.
    tracing::info!(%address, "listening on {scheme}://{address}");
}

fn walls(sandbox: &Sandbox) {
    let (isolation, capabilities) = (sandbox.isolation(), sandbox.capabilities());
    let names: Vec<_> = capabilities.enforceable.iter().map(|wall| wall.name()).collect();
    tracing::info!(%isolation, enforced = names.join(" "), "walls and limits that stand here");
    for missing in &capabilities.missing {
        // What a backend never has is no news; what this host keeps from it is.
        if isolation != Isolation::Native {
            continue;
        }
        if missing.protection.is_defense_in_depth() {
            tracing::info!(
                protection = missing.protection.name(),
                reason = missing.reason,
                "cannot be enforced here: executions go on without it, behind other walls"
            );
            continue;
        }
        tracing::warn!(
            protection = missing.protection.name(),
            reason = missing.reason,
            remedy = missing.remedy,
            "cannot be enforced here: executions are refused unless they allow it to be missing"
        );
    }
}

/// The answer to a signal.
pub(super) fn stopping(signal: &str, deadline: Duration) {
    let deadline = format_duration(deadline);
    tracing::info!(signal, deadline, "stopping: nothing more is accepted, what runs may finish");
}
