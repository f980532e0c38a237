use std::collections::BTreeMap;
use std::sync::Arc;

use sandbox_core::Status;
use sandbox_store::{
    ExecutionRecord, ExecutionSummary, FinishedExecution, InsertOutcome, NewExecution, Store,
};
use serde_json::json;

use super::{event, finish, finished, insert, moment, named, new, owned};

pub(crate) async fn an_inserted_execution_reads_back_complete(store: &dyn Store) {
    let request = json!({ "code": "print('é\u{0}')", "args": [1, 2.5, null, { "deep": [true] }] });
    let labels = BTreeMap::from([("team".to_owned(), "blue".to_owned())]);
    let accepted = NewExecution {
        request: request.to_string(),
        labels: labels.clone(),
        priority: -7,
        ..owned("key_a", new("exec_1", 0))
    };
    insert(store, accepted).await;
    let expected = ExecutionRecord {
        id: "exec_1".to_owned(),
        owner: Some("key_a".to_owned()),
        language: "python".to_owned(),
        request,
        status: Status::Queued,
        labels,
        priority: -7,
        attempts: 0,
        created_at: moment(0),
        started_at: None,
        finished_at: None,
        report: None,
    };
    let summary = ExecutionSummary { owner: expected.owner.clone(), status: expected.status };
    assert_eq!(store.execution("exec_1").await.unwrap(), Some(expected));
    assert_eq!(store.summary("exec_1").await.unwrap(), Some(summary));
    assert_eq!(store.summary("exec_2").await.unwrap(), None);
    assert_eq!(store.execution("exec_2").await.unwrap(), None);
}

pub(crate) async fn ids_are_unique(store: &dyn Store) {
    insert(store, owned("key_a", new("exec_1", 0))).await;
    assert!(store.insert(owned("key_b", new("exec_1", 1))).await.is_err());
    let kept = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!(kept.owner.as_deref(), Some("key_a"));
}

pub(crate) async fn an_execution_runs_is_requeued_and_finishes(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;

    store.mark_running("exec_1", moment(1)).await.unwrap();
    let begun = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!(
        (begun.status, begun.attempts, begun.started_at),
        (Status::Running, 1, Some(moment(1)))
    );

    store.requeue("exec_1").await.unwrap();
    let waits = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!((waits.status, waits.attempts, waits.started_at), (Status::Queued, 1, None));

    store.mark_running("exec_1", moment(2)).await.unwrap();
    let report = json!({ "exit_code": 1 });
    let result = finished("exec_1", Status::RuntimeError, vec![event(1)], 3);
    assert!(
        store
            .finish(FinishedExecution { report: report.to_string().into(), ..result })
            .await
            .unwrap()
    );
    let stored = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!((stored.status, stored.attempts), (Status::RuntimeError, 2));
    assert_eq!((stored.started_at, stored.finished_at), (Some(moment(2)), Some(moment(3))));
    assert_eq!(stored.report, Some(report));
    assert_eq!(store.events("exec_1", 0, 10).await.unwrap(), [event(1)]);
}

pub(crate) async fn an_execution_inserted_with_a_start_time_is_running(store: &dyn Store) {
    insert(store, NewExecution { started_at: Some(moment(1)), ..new("exec_1", 0) }).await;
    let begun = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!(
        (begun.status, begun.attempts, begun.started_at),
        (Status::Running, 1, Some(moment(1)))
    );
    assert_eq!(store.unfinished().await.unwrap(), [begun]);
}

pub(crate) async fn a_result_is_in_the_audit_log_once(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;
    let result = finished("exec_1", Status::Completed, vec![], 1);
    store.finish(result.clone()).await.unwrap();
    // The second result is ignored.
    store.finish(result.clone()).await.unwrap();
    assert_eq!(store.audit_log(10).await.unwrap(), [result.audit]);
}

pub(crate) async fn writes_with_dropped_futures_are_applied_in_order(store: &dyn Store) {
    drop(store.insert(new("exec_1", 0)));
    drop(store.mark_running("exec_1", moment(1)));
    drop(store.requeue("exec_1"));
    drop(store.mark_running("exec_1", moment(2)));
    finish(store, "exec_1", 3).await;
    let stored = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!((stored.attempts, stored.started_at), (2, Some(moment(2))));
}

pub(crate) async fn a_finished_execution_is_inserted_atomically(store: &dyn Store) {
    let begun = Arc::new(NewExecution { started_at: Some(moment(1)), ..new("exec_1", 0) });
    let result = |events| finished("exec_1", Status::Completed, events, 2);
    // A duplicate event makes the insertion fail halfway.
    assert!(store.insert_finished(begun.clone(), result(vec![event(1), event(1)])).await.is_err());
    assert_eq!(store.execution("exec_1").await.unwrap(), None);
    assert!(store.insert_finished(begun, result(vec![event(1)])).await.unwrap());
    let stored = store.execution("exec_1").await.unwrap().unwrap();
    assert_eq!((stored.status, stored.attempts), (Status::Completed, 1));
    assert_eq!(store.events("exec_1", 0, 10).await.unwrap(), [event(1)]);
    store.probe().await.unwrap();
    assert!(!store.is_failing(), "an invalid write is not a failure of the store");
}

pub(crate) async fn only_the_first_result_counts(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;
    finish(store, "exec_1", 1).await;
    let before = store.execution("exec_1").await.unwrap();
    let again = finished("exec_1", Status::Cancelled, vec![event(2)], 2);
    assert!(!store.finish(again).await.unwrap());
    assert_eq!(store.execution("exec_1").await.unwrap(), before);
    assert_eq!(store.events("exec_1", 0, 10).await.unwrap(), [event(1)]);
    let unknown = store.finish(finished("exec_2", Status::Error, vec![], 2)).await;
    assert!(!unknown.unwrap());
}

pub(crate) async fn a_finished_execution_does_not_run_again(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;
    finish(store, "exec_1", 1).await;
    let before = store.execution("exec_1").await.unwrap();
    store.mark_running("exec_1", moment(2)).await.unwrap();
    store.requeue("exec_1").await.unwrap();
    assert_eq!(store.execution("exec_1").await.unwrap(), before);
}

pub(crate) async fn a_result_is_written_atomically(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;
    let before = store.execution("exec_1").await.unwrap();
    // Two events with the same number cannot be stored, so the last step fails.
    let events = vec![event(1), event(2), event(2)];
    let failed = store.finish(finished("exec_1", Status::Completed, events, 1)).await;
    assert!(failed.is_err());
    assert_eq!(store.execution("exec_1").await.unwrap(), before);
    assert_eq!(store.events("exec_1", 0, 10).await.unwrap(), []);
    // `running` is not a final status.
    let unfinished = store.finish(finished("exec_1", Status::Running, vec![], 1)).await;
    assert!(unfinished.is_err());
    finish(store, "exec_1", 2).await;
}

pub(crate) async fn events_are_read_from_any_position(store: &dyn Store) {
    for id in ["exec_1", "exec_2"] {
        insert(store, new(id, 0)).await;
    }
    let events: Vec<_> = (1..=5).map(event).collect();
    store.finish(finished("exec_1", Status::Completed, events.clone(), 1)).await.unwrap();
    assert_eq!(store.events("exec_1", 0, 10).await.unwrap(), events);
    assert_eq!(store.events("exec_1", 3, 10).await.unwrap(), events[3..]);
    assert_eq!(store.events("exec_1", 1, 2).await.unwrap(), events[1..3]);
    assert_eq!(store.events("exec_1", 5, 10).await.unwrap(), []);
    assert_eq!(store.events("exec_1", u64::MAX, 10).await.unwrap(), []);
    assert_eq!(store.events("exec_2", 0, 10).await.unwrap(), []);
}

pub(crate) async fn many_events_are_kept_in_order(store: &dyn Store) {
    insert(store, new("exec_1", 0)).await;
    let events: Vec<_> = (1..=2000).map(event).collect();
    store.finish(finished("exec_1", Status::Completed, events.clone(), 1)).await.unwrap();
    assert_eq!(store.events("exec_1", 0, u32::MAX).await.unwrap(), events);
}

pub(crate) async fn an_idempotency_key_identifies_one_execution(store: &dyn Store) {
    insert(store, named("mine", "hash", new("exec_1", 0))).await;
    let again = store.insert(named("mine", "hash", new("exec_2", 1))).await.unwrap();
    assert_eq!(again, InsertOutcome::Duplicate("exec_1".to_owned()));
    let another = store.insert(named("mine", "other hash", new("exec_3", 1))).await.unwrap();
    assert_eq!(another, InsertOutcome::Conflict);
    for id in ["exec_2", "exec_3"] {
        assert_eq!(store.execution(id).await.unwrap(), None, "{id} was not accepted");
    }
    finish(store, "exec_1", 2).await;
    let after_it_finished = store.insert(named("mine", "hash", new("exec_4", 3))).await.unwrap();
    assert_eq!(after_it_finished, InsertOutcome::Duplicate("exec_1".to_owned()));
}

pub(crate) async fn idempotency_keys_of_different_owners_are_independent(store: &dyn Store) {
    insert(store, named("same", "hash", new("exec_1", 0))).await;
    insert(store, named("same", "hash", owned("key_a", new("exec_2", 0)))).await;
    insert(store, named("same", "other hash", owned("key_b", new("exec_3", 0)))).await;
    let again = store.insert(named("same", "hash", owned("key_a", new("exec_4", 0)))).await;
    assert_eq!(again.unwrap(), InsertOutcome::Duplicate("exec_2".to_owned()));
}

pub(crate) async fn unfinished_executions_are_listed_oldest_first(store: &dyn Store) {
    for (id, at) in [("exec_3", 3), ("exec_1", 1), ("exec_2", 2), ("exec_0", 0)] {
        insert(store, new(id, at)).await;
    }
    store.mark_running("exec_1", moment(4)).await.unwrap();
    finish(store, "exec_2", 5).await;
    let unfinished: Vec<_> = store
        .unfinished()
        .await
        .unwrap()
        .into_iter()
        .map(|execution| (execution.id, execution.status))
        .collect();
    let expected = [
        ("exec_0".to_owned(), Status::Queued),
        ("exec_1".to_owned(), Status::Running),
        ("exec_3".to_owned(), Status::Queued),
    ];
    assert_eq!(unfinished, expected);
}
