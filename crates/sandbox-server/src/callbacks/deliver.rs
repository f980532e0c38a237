//! Sending what is due.

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
use super::destination::understand;
use super::schedule::Schedule;
use super::secret::CallbackSecrets;
use super::send::{DELIVERY_TIMEOUT, Message, Sender, Tried, roots_of_the_system};
use super::under_way::{Bounds, Place, UnderWay};
use crate::metrics::{CallbackOutcome, Metrics};

/// Between two looks at what is due. Ends of executions, times to try again and what an earlier run left
/// are all found this way, so that there is one way only; a look that finds nothing costs microseconds.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Before an outcome that could not be stored is stored again.
const STORE_AGAIN: Duration = Duration::from_secs(5);

/// Everything that sending needs.
pub(super) struct Deliveries {
    pub(super) store: Arc<dyn Store>,
    pub(super) secrets: Arc<dyn CallbackSecrets>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) sender: Sender,
    pub(super) schedule: Schedule,
    pub(super) under_way: Arc<UnderWay>,
}

/// Sends callbacks for as long as what is given back is polled.
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
        sender: Sender::new(Arc::clone(&policy), roots_of_the_system(), DELIVERY_TIMEOUT)?,
        policy,
        schedule: Schedule::default(),
        under_way: UnderWay::new(Bounds::default()),
    };
    Ok(Arc::new(deliveries).run())
}

impl Deliveries {
    /// Never ends. Dropped, it leaves what is under way to the next start.
    pub(super) async fn run(self: Arc<Self>) {
        let mut sending = JoinSet::new();
        let mut ticks = interval(BETWEEN_LOOKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        loop {
            tokio::select! {
                // Its place is given back here, and so never between a look at what is due and what is
                // begun for it: the look may have seen it as it was before its end. One that ended by a
                // panic, which was printed when it happened, is due again.
                Some(ended) = sending.join_next() => drop(ended),
                _ = ticks.tick() => {}
            }
            let begun = self.begin_due(&mut sending).await;
            // Once for each time that it begins to fail, not at every look.
            if let Err(error) = &begun
                && !is_failing
            {
                tracing::error!(error = with_causes(error), "callbacks that are due are not found");
            }
            is_failing = begun.is_err();
        }
    }

    /// Begins whatever there is room for.
    async fn begin_due(self: &Arc<Self>, sending: &mut JoinSet<Place>) -> Result<(), StoreError> {
        while self.under_way.has_room() {
            let (busy, most) = (self.under_way.busy(), self.under_way.enough());
            let due = self.store.due_callbacks(Utc::now(), busy, most).await?;
            let mut begun = 0;
            for callback in due {
                if let Some(place) = self.under_way.take(&callback) {
                    sending.spawn(Arc::clone(self).deliver(callback, place));
                    begun += 1;
                }
            }
            if begun == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Tries once, and gives the place back when the outcome is stored: before that it is still due.
    async fn deliver(self: Arc<Self>, callback: DueCallback, place: Place) -> Place {
        let tried = match self.store.execution(&callback.execution).await {
            Ok(Some(record)) => self.send(&callback, &record).await,
            // It was swept a moment ago, and with it what was promised.
            Ok(None) => return place,
            Err(error) => Tried::Failed(with_causes(&error)),
        };
        let end = self.settle(&callback, tried).await;
        while let Err(error) = self.store.record_callback(&callback.execution, end).await {
            let id = &callback.execution;
            tracing::error!(id, error = with_causes(&error), "a callback's outcome is not stored");
            sleep(STORE_AGAIN).await;
        }
        place
    }

    async fn send(&self, callback: &DueCallback, record: &ExecutionRecord) -> Tried {
        // Once more: the settings may be others than when it was accepted.
        let url = match understand(&callback.url, &self.policy) {
            Ok(url) => url,
            Err(error) => return Tried::Hopeless(error.to_string()),
        };
        let secret = self.secrets.secret(callback.owner.as_deref());
        let (id, timestamp, body) = (&record.id, Utc::now().timestamp(), body(record));
        let signature = secret.sign(id, timestamp, &body);
        self.sender.send(url, Message { id, timestamp, signature, body }).await
    }

    /// Says what came of a try, and what follows.
    async fn settle(&self, callback: &DueCallback, tried: Tried) -> CallbackUpdate {
        let DueCallback { execution: id, host, tries, .. } = callback;
        let reason = match tried {
            Tried::Arrived => {
                self.metrics.callback(CallbackOutcome::Delivered);
                tracing::info!(id, host, tries, "callback delivered");
                return CallbackUpdate::Done;
            }
            Tried::Hopeless(reason) => reason,
            Tried::Failed(reason) => match self.schedule.after(*tries) {
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
        let record = AuditRecord {
            at: Utc::now(),
            actor: callback.owner.clone(),
            action: "callback.given_up".to_owned(),
            subject: callback.execution.clone(),
            detail: json!({ "host": callback.host, "tries": callback.tries + 1, "reason": reason }),
        };
        if let Err(error) = self.store.audit(record).await {
            let id = &callback.execution;
            tracing::error!(id, error = with_causes(&error), "no audit record");
        }
    }
}

/// What the receiver reads.
#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    timestamp: Option<String>,
    data: &'a Option<Value>,
}

/// The same at each try, so that a receiver can tell that it has it already.
fn body(record: &ExecutionRecord) -> Vec<u8> {
    let finished_at = record.finished_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
    let body = Body { r#type: "execution.finished", timestamp: finished_at, data: &record.report };
    serde_json::to_vec(&body).expect("it has only names for keys, which JSON can write")
}

/// Delays are hours, far from where this ends.
fn delta(delay: Duration) -> TimeDelta {
    TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX)
}
