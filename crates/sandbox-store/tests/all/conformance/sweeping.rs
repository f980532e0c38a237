use std::time::Duration;

use sandbox_core::Status;
use sandbox_store::{
    AuditRecord, ExecutionFilter, FinishedExecution, InsertOutcome, NewExecution, Retention, Store,
    StoredEvent, Swept,
};
use serde_json::json;

use super::{all, finish, finished, ids, insert, moment, named, new, owned};

const UNLIMITED: Retention = Retention::UNLIMITED;

const DAY: i64 = 24 * 60 * 60;

pub(crate) async fn executions_over_the_maximum_age_are_removed(store: &dyn Store) {
    for number in 0..5 {
        let id = format!("exec_{number}");
        insert(store, new(&id, number)).await;
        finish(store, &id, 10 + number).await;
    }
    assert_eq!(store.sweep(UNLIMITED, moment(1000)).await.unwrap(), Swept::default());
    let retention = Retention { age: Duration::from_mins(1), ..UNLIMITED };
    // 72 - 60 = 12: the executions that finished at 10 and 11 are too old, the one at 12 is not.
    let swept = store.sweep(retention, moment(72)).await.unwrap();
    assert_eq!(swept, Swept { executions: 2, ..Swept::default() });
    assert_eq!(ids(store, all()).await, ["exec_4", "exec_3", "exec_2"]);
    assert!(store.events("exec_1", 0, 10).await.unwrap().is_empty());
    assert_eq!(store.events("exec_2", 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.sweep(retention, moment(72)).await.unwrap(), Swept::default());
}

/// Inserts executions of slightly more than 30,000 bytes: in the request, in the report and in an event.
async fn insert_large(store: &dyn Store) {
    let large = "x".repeat(30_000);
    let request = json!({ "code": large }).to_string();
    insert(store, NewExecution { request, ..new("in_request", 0) }).await;
    finish(store, "in_request", 10).await;

    insert(store, new("in_report", 0)).await;
    let report = json!({ "stdout": large });
    let result = finished("in_report", Status::Completed, vec![], 11);
    store.finish(FinishedExecution { report: report.to_string().into(), ..result }).await.unwrap();

    insert(store, new("in_event", 0)).await;
    let event = StoredEvent { seq: 1, json: json!({ "data": large }).to_string() };
    store.finish(finished("in_event", Status::Completed, vec![event], 12)).await.unwrap();
}

pub(crate) async fn the_oldest_executions_are_removed_until_the_rest_fits(store: &dyn Store) {
    insert_large(store).await;
    let at_most = |bytes| Retention { bytes, ..UNLIMITED };
    assert_eq!(store.sweep(at_most(100_000), moment(20)).await.unwrap(), Swept::default());
    assert_eq!(store.sweep(at_most(90_000), moment(20)).await.unwrap().executions, 1);
    assert_eq!(store.execution("in_request").await.unwrap(), None);
    assert_eq!(store.sweep(at_most(65_000), moment(20)).await.unwrap(), Swept::default());
    assert_eq!(store.sweep(at_most(60_000), moment(20)).await.unwrap().executions, 1);
    assert_eq!(ids(store, all()).await, ["in_event"]);
    assert_eq!(store.sweep(at_most(30_000), moment(20)).await.unwrap().executions, 1);
    assert!(ids(store, all()).await.is_empty());
}

/// Inserts finished executions of an owner, one per second, with reports of this size.
async fn insert_many(store: &dyn Store, owner: &str, numbers: std::ops::Range<i64>, bytes: usize) {
    for number in numbers {
        let id = format!("exec_{owner}_{number}");
        let named = named(&format!("name_{number}"), "hash", new(&id, number));
        insert(store, owned(owner, named)).await;
        let report = json!({ "stdout": "x".repeat(bytes) }).to_string().into();
        let result = finished(&id, Status::Completed, vec![], number);
        store.finish(FinishedExecution { report, ..result }).await.unwrap();
    }
}

async fn kept(store: &dyn Store, owner: &str) -> Vec<String> {
    let filter = ExecutionFilter { owner: Some(Some(owner.to_owned())), ..all() };
    ids(store, filter).await
}

pub(crate) async fn one_owner_cannot_displace_executions_of_another(store: &dyn Store) {
    // The executions of the quiet owner are the oldest.
    insert_many(store, "quiet", 0..3, 1_000).await;
    insert_many(store, "greedy", 100..130, 10_000).await;
    insert(store, new("local", 200)).await;
    finish(store, "local", 200).await;
    let retention = Retention { bytes: 100_000, ..UNLIMITED };
    let swept = store.sweep(retention, moment(300)).await.unwrap();
    assert_eq!(swept.executions, swept.idempotency, "{swept:?}");
    assert_eq!(kept(store, "quiet").await.len(), 3);
    // The greedy owner keeps its newest.
    let left = kept(store, "greedy").await;
    assert!((8..=9).contains(&left.len()), "{left:?}");
    assert_eq!(left[0], "exec_greedy_129");
    assert_eq!(ids(store, all()).await.len(), left.len() + 4);
    // The idempotency key of the quiet owner still works.
    let again = owned("quiet", named("name_0", "hash", new("exec_again", 301)));
    let again = store.insert(again).await.unwrap();
    assert_eq!(again, InsertOutcome::Duplicate("exec_quiet_0".to_owned()));
}

pub(crate) async fn the_limits_per_owner_are_enforced(store: &dyn Store) {
    insert_many(store, "one", 0..10, 1_000).await;
    insert_many(store, "other", 0..4, 1_000).await;
    let few = Retention { executions_per_owner: 5, ..UNLIMITED };
    assert_eq!(store.sweep(few, moment(20)).await.unwrap().executions, 5);
    assert_eq!((kept(store, "one").await.len(), kept(store, "other").await.len()), (5, 4));
    let little = Retention { bytes_per_owner: 2_500, ..UNLIMITED };
    store.sweep(little, moment(20)).await.unwrap();
    for owner in ["one", "other"] {
        let left = kept(store, owner).await;
        assert_eq!(left.len(), 2, "{left:?}");
    }
    assert_eq!(store.sweep(little, moment(20)).await.unwrap(), Swept::default());
}

pub(crate) async fn one_actor_cannot_displace_audit_entries_of_another(store: &dyn Store) {
    let entry = |actor: Option<&str>, number: i64| AuditRecord {
        at: moment(number),
        actor: actor.map(ToOwned::to_owned),
        action: "cancel".to_owned(),
        subject: format!("{actor:?}_{number}"),
        detail: json!({}),
    };
    for number in 0..5 {
        store.audit(entry(Some("quiet"), number)).await.unwrap();
        store.audit(entry(None, number)).await.unwrap();
    }
    for number in 10..1510 {
        drop(store.audit(entry(Some("greedy"), number)));
    }
    let retention = Retention { audit_entries: 100, ..UNLIMITED };
    let swept = store.sweep(retention, moment(2000)).await.unwrap();
    assert_eq!(swept, Swept { audit: 1410, ..Swept::default() });
    let left = store.audit_log(1000).await.unwrap();
    assert_eq!((left.len(), &left[0]), (100, &entry(Some("greedy"), 1509)));
    let of = |actor| left.iter().filter(|entry| entry.actor.as_deref() == actor).count();
    assert_eq!((of(Some("quiet")), of(None), of(Some("greedy"))), (5, 5, 90));
    assert_eq!(store.sweep(retention, moment(2000)).await.unwrap(), Swept::default());
}

pub(crate) async fn unfinished_executions_are_never_removed(store: &dyn Store) {
    insert(store, new("waits", 0)).await;
    insert(store, new("runs", 0)).await;
    store.mark_running("runs", moment(1)).await.unwrap();
    insert(store, new("done", 0)).await;
    finish(store, "done", 2).await;
    let nothing = Retention { age: Duration::ZERO, bytes: 0, ..UNLIMITED };
    assert_eq!(store.sweep(nothing, moment(1000)).await.unwrap().executions, 1);
    assert_eq!(ids(store, all()).await, ["waits", "runs"]);
}

pub(crate) async fn idempotency_keys_expire_after_a_day(store: &dyn Store) {
    insert(store, named("mine", "hash", new("exec_1", 0))).await;
    let just_kept = store.sweep(UNLIMITED, moment(DAY)).await.unwrap();
    assert_eq!(just_kept, Swept::default());
    let forgotten = store.sweep(UNLIMITED, moment(DAY + 1)).await.unwrap();
    assert_eq!(forgotten, Swept { idempotency: 1, ..Swept::default() });
    insert(store, named("mine", "other hash", new("exec_2", DAY + 2))).await;
    assert_eq!(ids(store, all()).await, ["exec_2", "exec_1"]);
}

pub(crate) async fn an_idempotency_key_is_removed_with_its_execution(store: &dyn Store) {
    insert(store, named("mine", "hash", new("exec_1", 0))).await;
    finish(store, "exec_1", 1).await;
    let nothing = Retention { bytes: 0, ..UNLIMITED };
    let swept = store.sweep(nothing, moment(2)).await.unwrap();
    assert_eq!(swept, Swept { executions: 1, idempotency: 1, audit: 0 });
    let again = store.insert(named("mine", "hash", new("exec_2", 3))).await.unwrap();
    assert_eq!(again, InsertOutcome::New, "a removed execution is not a duplicate");
}

pub(crate) async fn a_sweep_removes_more_than_one_batch(store: &dyn Store) {
    for number in 0..450 {
        let id = format!("exec_{number}");
        insert(store, new(&id, 0)).await;
        finish(store, &id, number).await;
    }
    let retention = Retention { age: Duration::from_secs(10), ..UNLIMITED };
    assert_eq!(store.sweep(retention, moment(455)).await.unwrap().executions, 445);
    assert_eq!(ids(store, all()).await.len(), 5);
}

async fn write_audit(store: &dyn Store, subject: &str, at: i64) {
    let entry = AuditRecord {
        at: moment(at),
        actor: None,
        action: "execute".to_owned(),
        subject: subject.to_owned(),
        detail: json!({}),
    };
    store.audit(entry).await.unwrap();
}

pub(crate) async fn only_old_audit_entries_are_removed(store: &dyn Store) {
    // The first is written while the clock is ahead; more than one batch follows.
    write_audit(store, "ahead", 5000).await;
    for number in 0..1500 {
        write_audit(store, &format!("exec_{number}"), number).await;
    }
    insert(store, new("done", 0)).await;
    // Its own audit entry is removed with the others.
    finish(store, "done", 1).await;
    assert_eq!(store.sweep(UNLIMITED, moment(9000)).await.unwrap(), Swept::default());

    let retention = Retention { audit: Duration::from_mins(1), ..UNLIMITED };
    // 1558 - 60 = 1498: the entry written then is just within the maximum age.
    let swept = store.sweep(retention, moment(1558)).await.unwrap();
    assert_eq!(swept, Swept { audit: 1498 + 1, ..Swept::default() });
    let left = store.audit_log(10).await.unwrap();
    let left: Vec<_> = left.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(left, ["exec_1499", "exec_1498", "ahead"]);
    assert_eq!(ids(store, all()).await, ["done"]);
}

pub(crate) async fn the_size_grows_with_the_content(store: &dyn Store) {
    let before = store.size().await.unwrap();
    let large = json!({ "code": "x".repeat(1_000_000) }).to_string();
    insert(store, NewExecution { request: large, ..new("large", 0) }).await;
    let grown = store.size().await.unwrap() - before;
    // A few pages may have been free before.
    assert!((900_000..2_000_000).contains(&grown), "{grown}");
}
