//! What every store promises, written against the trait alone. A store is held to it by one line,
//! `conformance!(fresh)`, where `fresh` makes an empty store and something that keeps it alive.

pub(crate) mod callbacks;
pub(crate) mod concurrency;
pub(crate) mod keys_and_audit;
pub(crate) mod lifecycle;
pub(crate) mod listing;
pub(crate) mod sweeping;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use sandbox_core::Status;
use sandbox_store::{
    AuditRecord, Ending, ExecutionFilter, Idempotency, Inserted, NewExecution, Store, StoredEvent,
};
use serde_json::json;

macro_rules! conformance {
    ($fresh:path) => {
        conformance! { $fresh;
            lifecycle::what_is_inserted_is_read_back_whole,
            lifecycle::an_id_is_taken_once,
            lifecycle::an_execution_begins_waits_again_and_ends,
            lifecycle::one_that_is_begun_at_once_is_running,
            lifecycle::an_end_is_in_the_audit_log,
            lifecycle::one_that_is_over_already_is_inserted_whole_or_not_at_all,
            lifecycle::only_the_first_end_counts,
            lifecycle::what_is_over_does_not_begin_again,
            lifecycle::an_end_is_written_whole_or_not_at_all,
            lifecycle::events_are_read_from_any_place,
            lifecycle::many_events_are_kept_in_order,
            lifecycle::the_same_request_again_is_the_same_execution,
            lifecycle::names_of_one_owner_are_free_for_another,
            lifecycle::the_unfinished_are_told_oldest_first,
            listing::filters_select,
            listing::labels_are_compared_as_they_are,
            listing::owners_are_apart,
            listing::pages_join_without_gaps_or_doubles_while_others_insert,
            listing::those_of_one_moment_are_all_listed,
            listing::a_made_up_cursor_is_refused,
            sweeping::what_is_too_old_goes,
            sweeping::the_oldest_go_until_the_rest_fits,
            sweeping::one_owner_cannot_drive_out_what_is_anothers,
            sweeping::an_owner_keeps_no_more_than_its_own_bounds,
            sweeping::one_actor_cannot_drive_out_what_others_did,
            sweeping::the_unfinished_stay,
            sweeping::names_are_forgotten_after_a_day,
            sweeping::a_name_goes_with_its_execution,
            sweeping::more_than_one_step_is_swept,
            callbacks::a_callback_is_due_once_its_execution_is_over,
            callbacks::what_was_tried_in_vain_waits_for_its_time,
            callbacks::those_that_are_due_longest_come_first,
            callbacks::busy_hosts_and_owners_are_left_out,
            callbacks::the_same_request_again_promises_nothing_more,
            callbacks::a_callback_goes_with_its_execution,
            sweeping::old_audit_entries_go_and_nothing_else_does,
            sweeping::its_size_grows_with_what_is_kept,
            keys_and_audit::keys_are_remembered_and_taken_back,
            keys_and_audit::permissions_of_a_key_are_kept_and_replaced,
            lifecycle::writes_nobody_waits_for_are_made_in_order,
            keys_and_audit::the_audit_log_is_told_newest_first,
        }
        conformance! { $fresh; shared
            concurrency::fifty_tasks_lose_nothing,
            concurrency::one_of_fifty_ends_counts,
            concurrency::one_of_fifty_insertions_under_a_name_counts,
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
                store.ping().await.expect("it answers");
                $crate::conformance::$group::$check(&store).await;
            }
        )*
    };
}
pub(crate) use conformance;

/// A moment that every store keeps exactly, so many seconds after the first one.
pub(crate) fn moment(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_790_000_000_123_456).unwrap() + TimeDelta::seconds(seconds)
}

/// An execution of nobody, accepted at this moment.
pub(crate) fn new(id: &str, at: i64) -> NewExecution {
    NewExecution {
        id: id.to_owned(),
        owner: None,
        language: "python".to_owned(),
        request: json!({ "code": "print(1)" }).to_string(),
        labels: BTreeMap::new(),
        priority: 0,
        created_at: moment(at),
        begun_at: None,
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
    assert_eq!(store.insert(new).await.unwrap(), Inserted::New);
}

/// An end at this moment.
pub(crate) fn ending(id: &str, status: Status, events: Vec<StoredEvent>, at: i64) -> Ending {
    let audit = AuditRecord {
        at: moment(at),
        actor: None,
        action: "execute".to_owned(),
        subject: id.to_owned(),
        detail: json!({}),
    };
    Ending { id: id.to_owned(), status, report: "{}".into(), events, at: moment(at), audit }
}

/// Ends it as completed, with one event.
pub(crate) async fn end(store: &dyn Store, id: &str, at: i64) {
    let report = json!({ "id": id, "status": "completed" });
    let ending = Ending {
        report: report.to_string().into(),
        ..ending(id, Status::Completed, vec![event(1)], at)
    };
    assert!(store.finish(ending).await.unwrap(), "{id} was not over");
}

/// The ids of all that fit, page by page.
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

/// Everything, a few at a time.
pub(crate) fn all() -> ExecutionFilter {
    ExecutionFilter { limit: 3, ..ExecutionFilter::default() }
}
