use std::future::Future;
use std::sync::Arc;

use sandbox_core::Status;
use sandbox_store::{ExecutionFilter, FinishedExecution, InsertOutcome, Store};
use serde_json::json;

use super::{all, event, finish, finished, ids, insert, moment, named, new};

/// Runs fifty tasks concurrently and returns their outputs.
async fn fifty<T, F>(store: &Arc<dyn Store>, task: impl Fn(Arc<dyn Store>, i64) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> =
        (0..50).map(|number| tokio::spawn(task(Arc::clone(store), number))).collect();
    let mut made = Vec::new();
    for task in tasks {
        made.push(task.await.unwrap());
    }
    made
}

pub(crate) async fn concurrent_tasks_lose_nothing(store: &Arc<dyn Store>) {
    fifty(store, |store, task| async move {
        for number in 0..10 {
            let id = format!("exec_{task}_{number}");
            insert(&*store, new(&id, task)).await;
            store.mark_running(&id, moment(100)).await.unwrap();
            finish(&*store, &id, 200).await;
            let read = store.execution(&id).await.unwrap().unwrap();
            assert_eq!(read.status, Status::Completed, "a read sees earlier writes of its task");
        }
    })
    .await;
    let completed = ExecutionFilter { status: Some(Status::Completed), limit: 99, ..all() };
    assert_eq!(ids(&**store, completed).await.len(), 500);
    assert!(store.unfinished().await.unwrap().is_empty());
}

pub(crate) async fn one_of_fifty_concurrent_results_counts(store: &Arc<dyn Store>) {
    insert(&**store, new("exec_1", 0)).await;
    let ends = fifty(store, |store, task| async move {
        let report = json!({ "task": task });
        let result = finished("exec_1", Status::Completed, vec![event(1)], task);
        let ended = store
            .finish(FinishedExecution { report: report.to_string().into(), ..result })
            .await
            .unwrap();
        ended.then_some(report)
    })
    .await;
    let ends: Vec<_> = ends.into_iter().flatten().collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(store.execution("exec_1").await.unwrap().unwrap().report.as_ref(), ends.first());
}

pub(crate) async fn one_of_fifty_inserts_with_the_same_idempotency_key_counts(
    store: &Arc<dyn Store>,
) {
    let answers = fifty(store, |store, task| async move {
        let id = format!("exec_{task}");
        let answer = store.insert(named("mine", "hash", new(&id, task))).await.unwrap();
        (id, answer)
    })
    .await;
    let listed = ids(&**store, all()).await;
    assert_eq!(listed.len(), 1);
    for (id, answer) in answers {
        let expected = if id == listed[0] {
            InsertOutcome::New
        } else {
            InsertOutcome::Duplicate(listed[0].clone())
        };
        assert_eq!(answer, expected);
    }
}
