//! Sends the callbacks that are due.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::{SecondsFormat, TimeDelta, Utc};
use sandbox::with_causes;
use sandbox_store::{AuditRecord, CallbackUpdate, DueCallback, ExecutionRecord, Store, StoreError};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::address::AddressPolicy;
use super::destination::parse_url;
use super::in_flight::{InFlight, Limits, Slot};
use super::schedule::RetrySchedule;
use super::secret::CallbackSecrets;
use super::send::{Attempt, DELIVERY_TIMEOUT, Message, Sender, system_roots};
use crate::metrics::{CallbackOutcome, Metrics};

/// How often the store is asked for callbacks that are due: of finished executions, retries, and what an earlier run
/// left. A query that finds nothing takes microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The delay before the outcome of a delivery is stored again, after a failure.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Delivers callbacks.
pub(super) struct Deliveries {
    pub(super) store: Arc<dyn Store>,
    pub(super) secrets: Arc<dyn CallbackSecrets>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) sender: Sender,
    pub(super) schedule: RetrySchedule,
    pub(super) in_flight: Arc<InFlight>,
}

/// Returns a future that sends callbacks as long as it is polled.
pub(crate) fn start(
    store: Arc<dyn Store>,
    secrets: Arc<dyn CallbackSecrets>,
    metrics: Arc<Metrics>,
    policy: AddressPolicy,
) -> Result<impl Future<Output = ()> + Send + 'static> {
    let policy = Arc::new(policy);
    let deliveries = Deliveries {
        store,
        secrets,
        metrics,
        sender: Sender::new(Arc::clone(&policy), system_roots(), DELIVERY_TIMEOUT)?,
        policy,
        schedule: RetrySchedule::default(),
        in_flight: InFlight::new(Limits::default()),
    };
    Ok(Arc::new(deliveries).run())
}

impl Deliveries {
    /// Never returns. When it is dropped, callbacks in flight are left to the next start.
    pub(super) async fn run(self: Arc<Self>) {
        let mut sending = JoinSet::new();
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        loop {
            tokio::select! {
                // Slots are released only here, never between a query and the deliveries that it starts: the
                // query may have returned a callback whose delivery has just ended. After a panic, which was
                // logged, the callback is due again.
                Some(ended) = sending.join_next() => drop(ended),
                _ = ticks.tick() => {}
            }
            let started = self.start_due(&mut sending).await;
            // Once per outage, not per query.
            if let Err(error) = &started
                && !is_failing
            {
                tracing::error!(
                    error = with_causes(error),
                    "failed to find the callbacks that are due"
                );
            }
            is_failing = started.is_err();
        }
    }

    /// Starts deliveries while there are free slots.
    async fn start_due(self: &Arc<Self>, sending: &mut JoinSet<Slot>) -> Result<(), StoreError> {
        while self.in_flight.has_free_slot() {
            let (excluded, limit) = (self.in_flight.exclusions(), self.in_flight.max_due());
            let due = self.store.due_callbacks(Utc::now(), excluded, limit).await?;
            let mut started = 0;
            for callback in due {
                if let Some(slot) = self.in_flight.try_acquire(&callback) {
                    sending.spawn(Arc::clone(self).deliver(callback, slot));
                    started += 1;
                }
            }
            if started == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Makes one attempt. The slot is released when the outcome is stored, because the callback is due until then.
    async fn deliver(self: Arc<Self>, callback: DueCallback, slot: Slot) -> Slot {
        let attempt = match self.store.execution(&callback.execution).await {
            Ok(Some(record)) => self.send(&callback, &record).await,
            // It was just swept, with its callback.
            Ok(None) => return slot,
            Err(error) => Attempt::Retry(with_causes(&error)),
        };
        let end = self.settle(&callback, attempt).await;
        while let Err(error) = self.store.record_callback(&callback.execution, end).await {
            let id = &callback.execution;
            tracing::error!(
                id,
                error = with_causes(&error),
                "failed to store the outcome of a callback"
            );
            sleep(STORE_RETRY_INTERVAL).await;
        }
        slot
    }

    async fn send(&self, callback: &DueCallback, record: &ExecutionRecord) -> Attempt {
        // The settings may have changed since it was accepted.
        let url = match parse_url(&callback.url, &self.policy) {
            Ok(url) => url,
            Err(error) => return Attempt::Permanent(error.to_string()),
        };
        let secret = self.secrets.secret(callback.owner.as_deref());
        let (id, timestamp, body) = (&record.id, Utc::now().timestamp(), body(record));
        let signature = secret.sign(id, timestamp, &body);
        self.sender.send(url, Message { id, timestamp, signature, body }).await
    }

    /// Logs the outcome of an attempt and decides what follows.
    async fn settle(&self, callback: &DueCallback, attempt: Attempt) -> CallbackUpdate {
        let DueCallback { execution: id, host, tries, .. } = callback;
        let reason = match attempt {
            Attempt::Delivered => {
                self.metrics.callback(CallbackOutcome::Delivered);
                tracing::info!(id, host, tries, "callback delivered");
                return CallbackUpdate::Done;
            }
            Attempt::Permanent(reason) => reason,
            Attempt::Retry(reason) => match self.schedule.after(*tries) {
                Some(delay) => {
                    self.metrics.callback(CallbackOutcome::Failed);
                    let seconds = delay.as_secs();
                    tracing::warn!(id, host, tries, reason, again_in = seconds, "callback failed");
                    return CallbackUpdate::RetryAt(Utc::now() + delta(delay));
                }
                None => reason,
            },
        };
        self.metrics.callback(CallbackOutcome::GivenUp);
        tracing::warn!(id, host, tries, reason, "callback given up");
        self.audit(callback, &reason).await;
        CallbackUpdate::Done
    }

    async fn audit(&self, callback: &DueCallback, reason: &str) {
        let detail =
            json!({ "host": callback.host, "tries": callback.tries + 1, "reason": reason });
        let (actor, subject) = (callback.owner.clone(), &callback.execution);
        let record = AuditRecord::new(actor, "callback.given_up", subject, detail);
        if let Err(error) = self.store.audit(record).await {
            let id = &callback.execution;
            tracing::error!(id, error = with_causes(&error), "no audit record");
        }
    }
}

/// The body of a callback.
#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    timestamp: Option<String>,
    data: &'a Option<Value>,
}

/// The same at each attempt, so that a receiver can recognize a duplicate.
fn body(record: &ExecutionRecord) -> Vec<u8> {
    let finished_at = record.finished_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
    let body = Body { r#type: "execution.finished", timestamp: finished_at, data: &record.report };
    serde_json::to_vec(&body).expect("it has only names for keys, which JSON can write")
}

/// Delays are hours, far below the maximum.
fn delta(delay: Duration) -> TimeDelta {
    TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX)
}
