//! Conformance tests for every implementation of the trait `Store`. `conformance!(fresh)` runs them, where `fresh`
//! returns an empty store and a guard that keeps its resources alive.

pub(crate) mod callbacks;
pub(crate) mod concurrency;
pub(crate) mod keys_and_audit;
pub(crate) mod lifecycle;
pub(crate) mod listing;
pub(crate) mod queue;
pub(crate) mod sweeping;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sandbox_core::Status;
use sandbox_store::{
    AuditRecord, ExecutionFilter, FinishedExecution, Idempotency, InsertOutcome, NewExecution,
    Store, StoredEvent,
};
use serde_json::json;

macro_rules! conformance {
    ($fresh:path) => {
        conformance! { $fresh;
            lifecycle::an_inserted_execution_reads_back_complete,
            lifecycle::ids_are_unique,
            lifecycle::an_execution_runs_is_requeued_and_finishes,
            lifecycle::an_execution_inserted_with_a_start_time_is_running,
            lifecycle::a_result_is_in_the_audit_log_once,
            lifecycle::a_finished_execution_is_inserted_atomically,
            lifecycle::only_the_first_result_counts,
            lifecycle::a_finished_execution_does_not_run_again,
            lifecycle::a_result_is_written_atomically,
            lifecycle::events_are_read_from_any_position,
            lifecycle::many_events_are_kept_in_order,
            lifecycle::an_idempotency_key_identifies_one_execution,
            lifecycle::idempotency_keys_of_different_owners_are_independent,
            lifecycle::unfinished_executions_are_listed_oldest_first,
            listing::filters_select_executions,
            listing::labels_are_compared_literally,
            listing::owners_see_only_their_own_executions,
            listing::pages_have_no_gaps_or_duplicates_during_inserts,
            listing::executions_of_the_same_microsecond_are_all_listed,
            listing::an_invalid_cursor_is_rejected,
            sweeping::executions_over_the_maximum_age_are_removed,
            sweeping::the_oldest_executions_are_removed_until_the_rest_fits,
            sweeping::one_owner_cannot_displace_executions_of_another,
            sweeping::the_limits_per_owner_are_enforced,
            sweeping::one_actor_cannot_displace_audit_entries_of_another,
            sweeping::unfinished_executions_are_never_removed,
            sweeping::idempotency_keys_expire_after_a_day,
            sweeping::an_idempotency_key_is_removed_with_its_execution,
            sweeping::a_sweep_removes_more_than_one_batch,
            callbacks::a_callback_is_due_when_its_execution_has_finished,
            callbacks::a_failed_callback_is_due_again_at_its_retry_time,
            callbacks::callbacks_are_ordered_by_due_time,
            callbacks::excluded_hosts_and_owners_are_left_out,
            callbacks::a_repeated_request_adds_no_callback,
            callbacks::a_callback_is_removed_with_its_execution,
            sweeping::only_old_audit_entries_are_removed,
            sweeping::the_size_grows_with_the_content,
            keys_and_audit::keys_are_stored_and_revoked,
            keys_and_audit::permissions_of_a_key_are_stored_and_replaced,
            lifecycle::writes_with_dropped_futures_are_applied_in_order,
            keys_and_audit::the_audit_log_is_listed_newest_first,
        }
        conformance! { $fresh; shared
            concurrency::concurrent_tasks_lose_nothing,
            concurrency::one_of_fifty_concurrent_results_counts,
            concurrency::one_of_fifty_inserts_with_the_same_idempotency_key_counts,
        }
    };
    ($fresh:path; shared $($group:ident :: $check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let (store, _alive) = $fresh().await;
                let store: std::sync::Arc<dyn sandbox_store::Store> = std::sync::Arc::new(store);
                $crate::conformance::$group::$check(&store).await;
            }
        )*
    };
    ($fresh:path; $($group:ident :: $check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let (store, _alive) = $fresh().await;
                store.ping().await.expect("a new store is readable");
                $crate::conformance::$group::$check(&store).await;
            }
        )*
    };
}
pub(crate) use conformance;

/// A time that every store can represent exactly, `seconds` after a fixed start.
pub(crate) fn moment(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_790_000_000_123_456).unwrap() + TimeDelta::seconds(seconds)
}

/// An execution without an owner, accepted at `at`.
pub(crate) fn new(id: &str, at: i64) -> NewExecution {
    NewExecution {
        id: id.to_owned(),
        owner: None,
        language: "python".to_owned(),
        request: json!({ "code": "print(1)" }).to_string(),
        labels: BTreeMap::new(),
        priority: 0,
        created_at: moment(at),
        started_at: None,
        idempotency: None,
        callback: None,
    }
}

pub(crate) fn owned(owner: &str, new: NewExecution) -> NewExecution {
    NewExecution { owner: Some(owner.to_owned()), ..new }
}

pub(crate) fn named(key: &str, body_hash: &str, new: NewExecution) -> NewExecution {
    let idempotency = Idempotency { key: key.to_owned(), body_hash: body_hash.to_owned() };
    NewExecution { idempotency: Some(idempotency), ..new }
}

pub(crate) fn event(seq: u64) -> StoredEvent {
    StoredEvent { seq, json: json!({ "seq": seq, "type": "stdout", "data": "é\0\n" }).to_string() }
}

pub(crate) async fn insert(store: &dyn Store, new: NewExecution) {
    assert_eq!(store.insert(new).await.unwrap(), InsertOutcome::New);
}

/// A result at `at`.
pub(crate) fn finished(
    id: &str,
    status: Status,
    events: Vec<StoredEvent>,
    at: i64,
) -> FinishedExecution {
    let audit = AuditRecord {
        at: moment(at),
        actor: None,
        action: "execute".to_owned(),
        subject: id.to_owned(),
        detail: json!({}),
    };
    FinishedExecution {
        id: id.to_owned(),
        status,
        report: "{}".into(),
        events,
        at: moment(at),
        audit,
    }
}

/// Finishes an execution as completed, with one event.
pub(crate) async fn finish(store: &dyn Store, id: &str, at: i64) {
    let report = json!({ "id": id, "status": "completed" });
    let finished = FinishedExecution {
        report: report.to_string().into(),
        ..self::finished(id, Status::Completed, vec![event(1)], at)
    };
    assert!(store.finish(finished).await.unwrap(), "{id} is unfinished or unknown");
}

/// The ids of all executions that match the filter, read page by page.
pub(crate) async fn ids(store: &dyn Store, mut filter: ExecutionFilter) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = store.list(filter.clone()).await.unwrap();
        assert!(page.executions.len() <= filter.limit as usize);
        ids.extend(page.executions.into_iter().map(|execution| execution.id));
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => return ids,
        }
    }
}

/// A filter that matches everything, with small pages.
pub(crate) fn all() -> ExecutionFilter {
    ExecutionFilter { limit: 3, ..ExecutionFilter::default() }
}
