//! What a server does now and then, unasked.

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

/// Keys are made and taken back by another process, which nothing announces; a look costs a few
/// microseconds.
const BETWEEN_LOOKS_AT_KEYS: Duration = Duration::from_secs(1);
const BETWEEN_SWEEPS: Duration = Duration::from_mins(1);
const MEMORY_RELEASE_INTERVAL: Duration = Duration::from_secs(5);

/// Starts them; they end when what is given back is dropped.
pub(super) fn start(state: &AppState) -> Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    tasks.spawn(callbacks::start(
        Arc::clone(&state.store),
        Arc::<Keys>::clone(&state.keys),
        Arc::clone(&state.metrics),
        state.config.callback_allow.clone(),
    )?);
    tasks.spawn(follow_keys(state.clone()));
    tasks.spawn(sweep(state.clone()));
    tasks.spawn(release_memory());
    Ok(tasks)
}

/// Memory of large requests and reports goes back to the system when they are gone.
async fn release_memory() {
    let mut ticks = interval(MEMORY_RELEASE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // It only ends badly by a panic, which was printed when it happened.
        let _ = tokio::task::spawn_blocking(release_free_memory).await;
    }
}

async fn follow_keys(state: AppState) {
    let keys: Arc<Keys> = state.keys;
    let mut ticks = interval(BETWEEN_LOOKS_AT_KEYS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        let read = keys.reload(&*state.store).await;
        // Once for each time that it begins to fail, not every second.
        if let Err(error) = &read
            && !is_failing
        {
            tracing::error!(
                error = format!("{error:#}"),
                "keys made or revoked now do not count yet"
            );
        }
        is_failing = read.is_err();
    }
}

async fn sweep(state: AppState) {
    let mut ticks = interval(BETWEEN_SWEEPS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match state.store.sweep(state.config.retention, Utc::now()).await {
            Ok(swept) => {
                state.metrics.swept(swept);
                let Swept { executions, idempotency, audit } = swept;
                if executions + idempotency + audit > 0 {
                    tracing::info!(executions, idempotency, audit, "removed what is past its time");
                }
            }
            Err(error) => tracing::error!(error = with_causes(&error), "the sweep failed"),
        }
    }
}
