use std::time::Duration;

use sandbox_core::Status;
use sandbox_store::{
    AuditRecord, Ending, ExecutionFilter, Inserted, NewExecution, Retention, Store, StoredEvent,
    Swept,
};
use serde_json::json;

use super::{all, end, ending, ids, insert, moment, named, new, owned};

const FOR_EVER: Retention = Retention::UNLIMITED;

const DAY: i64 = 24 * 60 * 60;

pub(crate) async fn what_is_too_old_goes(store: &dyn Store) {
    for number in 0..5 {
        let id = format!("exec_{number}");
        insert(store, new(&id, number)).await;
        end(store, &id, 10 + number).await;
    }
    assert_eq!(store.sweep(FOR_EVER, moment(1000)).await.unwrap(), Swept::default());
    let retention = Retention { age: Duration::from_mins(1), ..FOR_EVER };
    // 72 - 60 = 12: what ended at 10 and 11 is older, what ended at 12 is just as old as it may be.
    let swept = store.sweep(retention, moment(72)).await.unwrap();
    assert_eq!(swept, Swept { executions: 2, ..Swept::default() });
    assert_eq!(ids(store, all()).await, ["exec_4", "exec_3", "exec_2"]);
    assert!(store.events("exec_1", 0, 10).await.unwrap().is_empty());
    assert_eq!(store.events("exec_2", 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.sweep(retention, moment(72)).await.unwrap(), Swept::default());
}

/// Each of these executions is a little larger than 30,000 bytes, in a part of its own.
async fn insert_large(store: &dyn Store) {
    let large = "x".repeat(30_000);
    let request = json!({ "code": large }).to_string();
    insert(store, NewExecution { request, ..new("in_request", 0) }).await;
    end(store, "in_request", 10).await;

    insert(store, new("in_report", 0)).await;
    let report = json!({ "stdout": large });
    let ended = ending("in_report", Status::Completed, vec![], 11);
    store.finish(Ending { report: report.to_string().into(), ..ended }).await.unwrap();

    insert(store, new("in_event", 0)).await;
    let event = StoredEvent { seq: 1, json: json!({ "data": large }).to_string() };
    store.finish(ending("in_event", Status::Completed, vec![event], 12)).await.unwrap();
}

pub(crate) async fn the_oldest_go_until_the_rest_fits(store: &dyn Store) {
    insert_large(store).await;
    let at_most = |bytes| Retention { bytes, ..FOR_EVER };
    assert_eq!(store.sweep(at_most(100_000), moment(20)).await.unwrap(), Swept::default());
    assert_eq!(store.sweep(at_most(90_000), moment(20)).await.unwrap().executions, 1);
    assert_eq!(store.execution("in_request").await.unwrap(), None);
    assert_eq!(store.sweep(at_most(65_000), moment(20)).await.unwrap(), Swept::default());
    assert_eq!(store.sweep(at_most(60_000), moment(20)).await.unwrap().executions, 1);
    assert_eq!(ids(store, all()).await, ["in_event"]);
    assert_eq!(store.sweep(at_most(30_000), moment(20)).await.unwrap().executions, 1);
    assert!(ids(store, all()).await.is_empty());
}

/// Ends executions of an owner, each with a report of this size, one a second.
async fn keep(store: &dyn Store, owner: &str, numbers: std::ops::Range<i64>, bytes: usize) {
    for number in numbers {
        let id = format!("exec_{owner}_{number}");
        let named = named(&format!("name_{number}"), "hash", new(&id, number));
        insert(store, owned(owner, named)).await;
        let report = json!({ "stdout": "x".repeat(bytes) }).to_string().into();
        let ending = ending(&id, Status::Completed, vec![], number);
        store.finish(Ending { report, ..ending }).await.unwrap();
    }
}

async fn kept(store: &dyn Store, owner: &str) -> Vec<String> {
    let filter = ExecutionFilter { owner: Some(Some(owner.to_owned())), ..all() };
    ids(store, filter).await
}

pub(crate) async fn one_owner_cannot_drive_out_what_is_anothers(store: &dyn Store) {
    // The quiet one's are the oldest of all.
    keep(store, "quiet", 0..3, 1_000).await;
    keep(store, "greedy", 100..130, 10_000).await;
    insert(store, new("local", 200)).await;
    end(store, "local", 200).await;
    let retention = Retention { bytes: 100_000, ..FOR_EVER };
    let swept = store.sweep(retention, moment(300)).await.unwrap();
    assert_eq!(swept.executions, swept.idempotency, "{swept:?}");
    assert_eq!(kept(store, "quiet").await.len(), 3);
    // The greedy one keeps its newest.
    let left = kept(store, "greedy").await;
    assert!((8..=9).contains(&left.len()), "{left:?}");
    assert_eq!(left[0], "exec_greedy_129");
    assert_eq!(ids(store, all()).await.len(), left.len() + 4);
    // Its name still stands for the quiet one's execution.
    let again = owned("quiet", named("name_0", "hash", new("exec_again", 301)));
    let again = store.insert(again).await.unwrap();
    assert_eq!(again, Inserted::Before("exec_quiet_0".to_owned()));
}

pub(crate) async fn an_owner_keeps_no_more_than_its_own_bounds(store: &dyn Store) {
    keep(store, "one", 0..10, 1_000).await;
    keep(store, "other", 0..4, 1_000).await;
    let few = Retention { executions_per_owner: 5, ..FOR_EVER };
    assert_eq!(store.sweep(few, moment(20)).await.unwrap().executions, 5);
    assert_eq!((kept(store, "one").await.len(), kept(store, "other").await.len()), (5, 4));
    let little = Retention { bytes_per_owner: 2_500, ..FOR_EVER };
    store.sweep(little, moment(20)).await.unwrap();
    for owner in ["one", "other"] {
        let left = kept(store, owner).await;
        assert_eq!(left.len(), 2, "{left:?}");
    }
    assert_eq!(store.sweep(little, moment(20)).await.unwrap(), Swept::default());
}

pub(crate) async fn one_actor_cannot_drive_out_what_others_did(store: &dyn Store) {
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
    let retention = Retention { audit_entries: 100, ..FOR_EVER };
    let swept = store.sweep(retention, moment(2000)).await.unwrap();
    assert_eq!(swept, Swept { audit: 1410, ..Swept::default() });
    let left = store.audit_log(1000).await.unwrap();
    assert_eq!((left.len(), &left[0]), (100, &entry(Some("greedy"), 1509)));
    let of = |actor| left.iter().filter(|entry| entry.actor.as_deref() == actor).count();
    assert_eq!((of(Some("quiet")), of(None), of(Some("greedy"))), (5, 5, 90));
    assert_eq!(store.sweep(retention, moment(2000)).await.unwrap(), Swept::default());
}

pub(crate) async fn the_unfinished_stay(store: &dyn Store) {
    insert(store, new("waits", 0)).await;
    insert(store, new("runs", 0)).await;
    store.begin("runs", moment(1)).await.unwrap();
    insert(store, new("over", 0)).await;
    end(store, "over", 2).await;
    let nothing = Retention { age: Duration::ZERO, bytes: 0, ..FOR_EVER };
    assert_eq!(store.sweep(nothing, moment(1000)).await.unwrap().executions, 1);
    assert_eq!(ids(store, all()).await, ["waits", "runs"]);
}

pub(crate) async fn names_are_forgotten_after_a_day(store: &dyn Store) {
    insert(store, named("mine", "hash", new("exec_1", 0))).await;
    let just_kept = store.sweep(FOR_EVER, moment(DAY)).await.unwrap();
    assert_eq!(just_kept, Swept::default());
    let forgotten = store.sweep(FOR_EVER, moment(DAY + 1)).await.unwrap();
    assert_eq!(forgotten, Swept { idempotency: 1, ..Swept::default() });
    insert(store, named("mine", "other hash", new("exec_2", DAY + 2))).await;
    assert_eq!(ids(store, all()).await, ["exec_2", "exec_1"]);
}

pub(crate) async fn a_name_goes_with_its_execution(store: &dyn Store) {
    insert(store, named("mine", "hash", new("exec_1", 0))).await;
    end(store, "exec_1", 1).await;
    let nothing = Retention { bytes: 0, ..FOR_EVER };
    let swept = store.sweep(nothing, moment(2)).await.unwrap();
    assert_eq!(swept, Swept { executions: 1, idempotency: 1, audit: 0 });
    let again = store.insert(named("mine", "hash", new("exec_2", 3))).await.unwrap();
    assert_eq!(again, Inserted::New, "an execution that is gone is no answer");
}

pub(crate) async fn more_than_one_step_is_swept(store: &dyn Store) {
    for number in 0..450 {
        let id = format!("exec_{number}");
        insert(store, new(&id, 0)).await;
        end(store, &id, number).await;
    }
    let retention = Retention { age: Duration::from_secs(10), ..FOR_EVER };
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

pub(crate) async fn old_audit_entries_go_and_nothing_else_does(store: &dyn Store) {
    // The first was written while the clock was ahead; more than one step follows.
    write_audit(store, "ahead", 5000).await;
    for number in 0..1500 {
        write_audit(store, &format!("exec_{number}"), number).await;
    }
    insert(store, new("over", 0)).await;
    // Its own entry goes with the others.
    end(store, "over", 1).await;
    assert_eq!(store.sweep(FOR_EVER, moment(9000)).await.unwrap(), Swept::default());

    let retention = Retention { audit: Duration::from_mins(1), ..FOR_EVER };
    // 1558 - 60 = 1498: what was written then is just as old as it may be.
    let swept = store.sweep(retention, moment(1558)).await.unwrap();
    assert_eq!(swept, Swept { audit: 1498 + 1, ..Swept::default() });
    let left = store.audit_log(10).await.unwrap();
    let left: Vec<_> = left.iter().map(|entry| entry.subject.as_str()).collect();
    assert_eq!(left, ["exec_1499", "exec_1498", "ahead"]);
    assert_eq!(ids(store, all()).await, ["over"]);
}

pub(crate) async fn its_size_grows_with_what_is_kept(store: &dyn Store) {
    let before = store.size().await.unwrap();
    let large = json!({ "code": "x".repeat(1_000_000) }).to_string();
    insert(store, NewExecution { request: large, ..new("large", 0) }).await;
    let grown = store.size().await.unwrap() - before;
    // A few pages may have been free before.
    assert!((900_000..2_000_000).contains(&grown), "{grown}");
}
