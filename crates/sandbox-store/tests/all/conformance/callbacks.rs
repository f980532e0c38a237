use sandbox_store::{
    Busy, CallbackEnd, DueCallback, Inserted, NewCallback, NewExecution, Retention, Store,
};

use super::{end, insert, moment, named, new, owned};

/// Its report goes to this host.
fn promised(host: &str, new: NewExecution) -> NewExecution {
    let url = format!("https://{host}/");
    NewExecution { callback: Some(NewCallback { url, host: host.to_owned() }), ..new }
}

async fn due(store: &dyn Store, at: i64) -> Vec<String> {
    due_besides(store, at, Busy::default()).await
}

async fn due_besides(store: &dyn Store, at: i64, busy: Busy) -> Vec<String> {
    let due = store.due_callbacks(moment(at), busy, 100).await.unwrap();
    due.into_iter().map(|callback| callback.execution).collect()
}

async fn insert_and_end(store: &dyn Store, new: NewExecution, at: i64) {
    let id = new.id.clone();
    insert(store, new).await;
    end(store, &id, at).await;
}

pub(crate) async fn a_callback_is_due_once_its_execution_is_over(store: &dyn Store) {
    insert(store, new("silent", 0)).await;
    insert(store, promised("a", owned("key_a", new("exec_1", 0)))).await;
    store.begin("exec_1", moment(1)).await.unwrap();
    assert!(due(store, 5).await.is_empty(), "there is no report yet");
    end(store, "silent", 2).await;
    end(store, "exec_1", 2).await;
    let expected = DueCallback {
        execution: "exec_1".to_owned(),
        owner: Some("key_a".to_owned()),
        url: "https://a/".to_owned(),
        host: "a".to_owned(),
        tries: 0,
    };
    let found = store.due_callbacks(moment(5), Busy::default(), 100).await.unwrap();
    assert_eq!(found, [expected]);
    store.callback_tried("exec_1", CallbackEnd::Over).await.unwrap();
    assert!(due(store, 5).await.is_empty(), "it is over");
}

pub(crate) async fn what_was_tried_in_vain_waits_for_its_time(store: &dyn Store) {
    insert_and_end(store, promised("a", new("exec_1", 0)), 1).await;
    for tries in 1..=3 {
        let at = 10 * i64::from(tries);
        store.callback_tried("exec_1", CallbackEnd::Again(moment(at))).await.unwrap();
        assert!(due(store, at - 1).await.is_empty());
        let found = store.due_callbacks(moment(at), Busy::default(), 100).await.unwrap();
        assert_eq!(found[0].tries, tries);
    }
    store.callback_tried("no such", CallbackEnd::Again(moment(0))).await.unwrap();
    store.callback_tried("no such", CallbackEnd::Over).await.unwrap();
    assert_eq!(due(store, 100).await, ["exec_1"]);
}

pub(crate) async fn those_that_are_due_longest_come_first(store: &dyn Store) {
    for (id, at) in [("second", 2), ("third", 3), ("first", 1)] {
        insert_and_end(store, promised("a", new(id, at)), 4).await;
    }
    assert_eq!(due(store, 5).await, ["first", "second", "third"]);
    store.callback_tried("first", CallbackEnd::Again(moment(5))).await.unwrap();
    let two = store.due_callbacks(moment(5), Busy::default(), 2).await.unwrap();
    let two: Vec<_> = two.iter().map(|callback| callback.execution.as_str()).collect();
    assert_eq!(two, ["second", "third"]);
}

pub(crate) async fn busy_hosts_and_owners_are_left_out(store: &dyn Store) {
    insert_and_end(store, promised("a", owned("key_a", new("a_of_a", 0))), 1).await;
    insert_and_end(store, promised("b", owned("key_a", new("b_of_a", 0))), 1).await;
    insert_and_end(store, promised("b", owned("key_b", new("b_of_b", 0))), 1).await;
    insert_and_end(store, promised("c", new("c_of_nobody", 0)), 1).await;
    let key = |key: &str| Some(key.to_owned());
    for (hosts, owners, expected) in [
        ("a", vec![], "b_of_a b_of_b c_of_nobody"),
        ("a c", vec![], "b_of_a b_of_b"),
        ("", vec![key("key_a"), None], "b_of_b"),
        ("b", vec![None], "a_of_a"),
    ] {
        let hosts = hosts.split_whitespace().map(str::to_owned).collect();
        assert_eq!(due_besides(store, 2, Busy { hosts, owners }).await.join(" "), expected);
    }
}

pub(crate) async fn the_same_request_again_promises_nothing_more(store: &dyn Store) {
    insert(store, promised("a", named("mine", "hash", new("exec_1", 0)))).await;
    let again = store.insert(promised("a", named("mine", "hash", new("exec_2", 1)))).await.unwrap();
    assert_eq!(again, Inserted::Before("exec_1".to_owned()));
    end(store, "exec_1", 2).await;
    assert_eq!(due(store, 3).await, ["exec_1"]);
}

pub(crate) async fn a_callback_goes_with_its_execution(store: &dyn Store) {
    insert_and_end(store, promised("a", new("exec_1", 0)), 1).await;
    let nothing = Retention { bytes: 0, ..Retention::UNLIMITED };
    assert_eq!(store.sweep(nothing, moment(2)).await.unwrap().executions, 1);
    // The same id again, so that a row that was left behind would be found.
    insert_and_end(store, new("exec_1", 3), 4).await;
    assert!(due(store, 5).await.is_empty());
}
