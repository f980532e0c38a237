use std::collections::{BTreeMap, BTreeSet};

use sandbox_core::Status;
use sandbox_store::{ExecutionFilter, NewExecution, Store, StoreError};

use super::{all, finish, ids, insert, moment, new, owned};

fn labelled(labels: &[(&str, &str)], new: NewExecution) -> NewExecution {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    NewExecution { labels: labels.collect(), ..new }
}

pub(crate) async fn filters_select_executions(store: &dyn Store) {
    let go = NewExecution { language: "go".to_owned(), ..new("exec_1", 1) };
    insert(store, new("exec_0", 0)).await;
    insert(store, go).await;
    insert(store, new("exec_2", 2)).await;
    insert(store, new("exec_3", 3)).await;
    finish(store, "exec_2", 9).await;

    assert_eq!(ids(store, all()).await, ["exec_3", "exec_2", "exec_1", "exec_0"]);
    let language = ExecutionFilter { language: Some("go".to_owned()), ..all() };
    assert_eq!(ids(store, language).await, ["exec_1"]);
    let status = ExecutionFilter { status: Some(Status::Completed), ..all() };
    assert_eq!(ids(store, status).await, ["exec_2"]);
    let between = ExecutionFilter { since: Some(moment(1)), until: Some(moment(3)), ..all() };
    assert_eq!(ids(store, between.clone()).await, ["exec_2", "exec_1"]);
    let all_at_once = ExecutionFilter { status: Some(Status::Queued), ..between };
    assert_eq!(ids(store, all_at_once).await, ["exec_1"]);
}

pub(crate) async fn labels_are_compared_literally(store: &dyn Store) {
    let awkward = ("it's \"$.a\" \\ %", "' OR 1=1 --");
    insert(store, labelled(&[("team", "blue"), ("run", "1")], new("exec_1", 1))).await;
    insert(store, labelled(&[("team", "blue"), ("run", "2")], new("exec_2", 2))).await;
    insert(store, labelled(&[("team", "red")], new("exec_3", 3))).await;
    insert(store, labelled(&[awkward, ("team", "green")], new("exec_4", 4))).await;
    insert(store, new("exec_5", 5)).await;

    let with = |wanted: &[(&str, &str)]| ExecutionFilter {
        labels: labelled(wanted, new("", 0)).labels,
        ..all()
    };
    assert_eq!(ids(store, with(&[("team", "blue")])).await, ["exec_2", "exec_1"]);
    assert_eq!(ids(store, with(&[("team", "blue"), ("run", "1")])).await, ["exec_1"]);
    assert_eq!(ids(store, with(&[awkward])).await, ["exec_4"]);
    assert!(ids(store, with(&[("team", "BLUE")])).await.is_empty());
    assert!(ids(store, with(&[("blue", "team")])).await.is_empty());
    let read_back = store.execution("exec_4").await.unwrap().unwrap().labels;
    let expected =
        BTreeMap::from([awkward, ("team", "green")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(read_back, expected);
}

pub(crate) async fn owners_see_only_their_own_executions(store: &dyn Store) {
    for number in 0..9 {
        let execution = new(&format!("exec_{number}"), number);
        let execution = match number % 3 {
            0 => execution,
            1 => owned("key_a", execution),
            _ => owned("key_b", execution),
        };
        insert(store, execution).await;
    }
    let of = |owner: Option<&str>| ExecutionFilter {
        owner: Some(owner.map(str::to_owned)),
        limit: 2,
        ..all()
    };
    assert_eq!(ids(store, of(None)).await, ["exec_6", "exec_3", "exec_0"]);
    assert_eq!(ids(store, of(Some("key_a"))).await, ["exec_7", "exec_4", "exec_1"]);
    assert_eq!(ids(store, of(Some("key_b"))).await, ["exec_8", "exec_5", "exec_2"]);
    assert!(ids(store, of(Some("key_c"))).await.is_empty());
    assert!(ids(store, of(Some(""))).await.is_empty());

    // A cursor of another owner reveals nothing of that owner's executions.
    let theirs = store.list(of(Some("key_a"))).await.unwrap().next;
    assert!(theirs.is_some());
    let with_theirs = ExecutionFilter { cursor: theirs, ..of(Some("key_b")) };
    assert_eq!(ids(store, with_theirs).await, ["exec_2"]);
}

pub(crate) async fn pages_have_no_gaps_or_duplicates_during_inserts(store: &dyn Store) {
    let mut expected = Vec::new();
    for number in 0..50 {
        insert(store, new(&format!("exec_{number:03}"), number)).await;
        expected.insert(0, format!("exec_{number:03}"));
    }
    let mut listed = Vec::new();
    let mut filter = ExecutionFilter { limit: 7, ..all() };
    for later in 50.. {
        let page = store.list(filter.clone()).await.unwrap();
        listed.extend(page.executions.into_iter().map(|execution| execution.id));
        // A newer execution is inserted between two pages.
        insert(store, new(&format!("exec_{later:03}"), later)).await;
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(listed, expected);
}

pub(crate) async fn executions_of_the_same_microsecond_are_all_listed(store: &dyn Store) {
    let mut expected = BTreeSet::new();
    for number in 0..20 {
        let id = format!("exec_{number}");
        insert(store, new(&id, 0)).await;
        expected.insert(id);
    }
    let listed = ids(store, all()).await;
    assert_eq!(listed.len(), 20);
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);

    let exactly = store.list(ExecutionFilter { limit: 20, ..all() }).await.unwrap();
    assert_eq!(exactly.executions.len(), 20);
    assert_eq!(exactly.next, None, "a full last page has no next cursor");
}

pub(crate) async fn an_invalid_cursor_is_rejected(store: &dyn Store) {
    for invalid in ["", "exec_1", "soon.exec_1", "99999999999999999999.exec_1"] {
        let filter = ExecutionFilter { cursor: Some(invalid.to_owned()), ..all() };
        let result = store.list(filter).await;
        assert!(matches!(result, Err(StoreError::InvalidCursor)), "{invalid:?} gave {result:?}");
    }
}
