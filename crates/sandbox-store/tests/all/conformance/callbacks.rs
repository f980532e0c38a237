use sandbox_store::{
    CallbackExclusions, CallbackUpdate, DueCallback, InsertOutcome, NewCallback, NewExecution,
    Retention, Store,
};

use super::{finish, insert, moment, named, new, owned};

/// Adds a callback to this host.
fn with_callback(host: &str, new: NewExecution) -> NewExecution {
    let url = format!("https://{host}/");
    NewExecution { callback: Some(NewCallback { url, host: host.to_owned() }), ..new }
}

async fn due(store: &dyn Store, at: i64) -> Vec<String> {
    due_except(store, at, CallbackExclusions::default()).await
}

async fn due_except(store: &dyn Store, at: i64, excluded: CallbackExclusions) -> Vec<String> {
    let due = store.due_callbacks(moment(at), excluded, 100).await.unwrap();
    due.into_iter().map(|callback| callback.execution).collect()
}

async fn insert_and_finish(store: &dyn Store, new: NewExecution, at: i64) {
    let id = new.id.clone();
    insert(store, new).await;
    finish(store, &id, at).await;
}

pub(crate) async fn a_callback_is_due_when_its_execution_has_finished(store: &dyn Store) {
    insert(store, new("silent", 0)).await;
    insert(store, with_callback("a", owned("key_a", new("exec_1", 0)))).await;
    store.mark_running("exec_1", moment(1)).await.unwrap();
    assert!(due(store, 5).await.is_empty(), "the execution has not finished");
    finish(store, "silent", 2).await;
    finish(store, "exec_1", 2).await;
    let expected = DueCallback {
        execution: "exec_1".to_owned(),
        owner: Some("key_a".to_owned()),
        url: "https://a/".to_owned(),
        host: "a".to_owned(),
        tries: 0,
    };
    let found = store.due_callbacks(moment(5), CallbackExclusions::default(), 100).await.unwrap();
    assert_eq!(found, [expected]);
    store.record_callback("exec_1", CallbackUpdate::Done).await.unwrap();
    assert!(due(store, 5).await.is_empty(), "the callback is done");
}

pub(crate) async fn a_failed_callback_is_due_again_at_its_retry_time(store: &dyn Store) {
    insert_and_finish(store, with_callback("a", new("exec_1", 0)), 1).await;
    for tries in 1..=3 {
        let at = 10 * i64::from(tries);
        store.record_callback("exec_1", CallbackUpdate::RetryAt(moment(at))).await.unwrap();
        assert!(due(store, at - 1).await.is_empty());
        let found =
            store.due_callbacks(moment(at), CallbackExclusions::default(), 100).await.unwrap();
        assert_eq!(found[0].tries, tries);
    }
    store.record_callback("no such", CallbackUpdate::RetryAt(moment(0))).await.unwrap();
    store.record_callback("no such", CallbackUpdate::Done).await.unwrap();
    assert_eq!(due(store, 100).await, ["exec_1"]);
}

pub(crate) async fn callbacks_are_ordered_by_due_time(store: &dyn Store) {
    for (id, at) in [("second", 2), ("third", 3), ("first", 1)] {
        insert_and_finish(store, with_callback("a", new(id, at)), 4).await;
    }
    assert_eq!(due(store, 5).await, ["first", "second", "third"]);
    store.record_callback("first", CallbackUpdate::RetryAt(moment(5))).await.unwrap();
    let two = store.due_callbacks(moment(5), CallbackExclusions::default(), 2).await.unwrap();
    let two: Vec<_> = two.iter().map(|callback| callback.execution.as_str()).collect();
    assert_eq!(two, ["second", "third"]);
}

pub(crate) async fn excluded_hosts_and_owners_are_left_out(store: &dyn Store) {
    insert_and_finish(store, with_callback("a", owned("key_a", new("a_of_a", 0))), 1).await;
    insert_and_finish(store, with_callback("b", owned("key_a", new("b_of_a", 0))), 1).await;
    insert_and_finish(store, with_callback("b", owned("key_b", new("b_of_b", 0))), 1).await;
    insert_and_finish(store, with_callback("c", new("c_of_nobody", 0)), 1).await;
    let key = |key: &str| Some(key.to_owned());
    for (hosts, owners, expected) in [
        ("a", vec![], "b_of_a b_of_b c_of_nobody"),
        ("a c", vec![], "b_of_a b_of_b"),
        ("", vec![key("key_a"), None], "b_of_b"),
        ("b", vec![None], "a_of_a"),
    ] {
        let hosts = hosts.split_whitespace().map(str::to_owned).collect();
        assert_eq!(
            due_except(store, 2, CallbackExclusions { hosts, owners }).await.join(" "),
            expected
        );
    }
}

pub(crate) async fn a_repeated_request_adds_no_callback(store: &dyn Store) {
    insert(store, with_callback("a", named("mine", "hash", new("exec_1", 0)))).await;
    let again =
        store.insert(with_callback("a", named("mine", "hash", new("exec_2", 1)))).await.unwrap();
    assert_eq!(again, InsertOutcome::Duplicate("exec_1".to_owned()));
    finish(store, "exec_1", 2).await;
    assert_eq!(due(store, 3).await, ["exec_1"]);
}

pub(crate) async fn a_callback_is_removed_with_its_execution(store: &dyn Store) {
    insert_and_finish(store, with_callback("a", new("exec_1", 0)), 1).await;
    let nothing = Retention { bytes: 0, ..Retention::UNLIMITED };
    assert_eq!(store.sweep(nothing, moment(2)).await.unwrap().executions, 1);
    // Reuses the id, so that a row left behind would be found.
    insert_and_finish(store, new("exec_1", 3), 4).await;
    assert!(due(store, 5).await.is_empty());
}
