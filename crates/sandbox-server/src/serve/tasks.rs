//! Periodic background tasks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::Utc;
use sandbox::{release_free_memory, with_causes};
use sandbox_store::Swept;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::callbacks;
use crate::keys::Keys;
use crate::state::AppState;

/// Other processes create and revoke keys without a notification; reading the keys takes a few microseconds.
const KEY_RELOAD_INTERVAL: Duration = Duration::from_secs(1);
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);
const MEMORY_RELEASE_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the tasks. Dropping the set stops them.
pub(super) fn start(state: &AppState) -> Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    tasks.spawn(callbacks::start(
        Arc::clone(&state.store),
        Arc::<Keys>::clone(&state.keys),
        Arc::clone(&state.metrics),
        state.config.callback_allow.clone(),
    )?);
    tasks.spawn(reload_keys(state.clone()));
    tasks.spawn(sweep(state.clone()));
    tasks.spawn(release_memory());
    Ok(tasks)
}

/// Returns the freed memory of large requests and reports to the system.
async fn release_memory() {
    let mut ticks = interval(MEMORY_RELEASE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Fails only after a panic, which has been logged.
        let _ = tokio::task::spawn_blocking(release_free_memory).await;
    }
}

async fn reload_keys(state: AppState) {
    let keys: Arc<Keys> = state.keys;
    let mut ticks = interval(KEY_RELOAD_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let read = keys.reload(&*state.store).await;
        // Log the first of consecutive failures only.
        if let Err(error) = &read
            && !is_failing
        {
            tracing::error!(
                error = format!("{error:#}"),
                "failed to reload the keys: changes do not apply yet"
            );
        }
        is_failing = read.is_err();
    }
}

async fn sweep(state: AppState) {
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match state.store.sweep(state.config.retention, Utc::now()).await {
            Ok(swept) => {
                state.metrics.swept(swept);
                let Swept { executions, idempotency, audit } = swept;
                if executions + idempotency + audit > 0 {
                    tracing::info!(executions, idempotency, audit, "removed expired records");
                }
            }
            Err(error) => {
                tracing::error!(error = with_causes(&error), "failed to remove expired records");
            }
        }
    }
}
