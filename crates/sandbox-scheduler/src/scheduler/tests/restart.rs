use super::*;
use chrono::Utc;
use sandbox::Status;
use sandbox_store::NewExecution;

/// What a server that was killed leaves: an execution that was accepted, and begun so often.
async fn left_behind(store: &dyn Store, language: &str, code: &str, begun: u32) -> String {
    let id = ExecutionId::generate().to_string();
    let new = NewExecution {
        id: id.clone(),
        owner: None,
        language: language.to_owned(),
        request: json!({ "language": language, "code": code }).to_string(),
        labels: BTreeMap::new(),
        priority: 0,
        created_at: Utc::now(),
        started_at: None,
        idempotency: None,
        callback: None,
    };
    store.insert(new).await.unwrap();
    for _ in 0..begun {
        store.mark_running(&id, Utc::now()).await.unwrap();
    }
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_is_run_or_ended() {
    let bench = Bench::new(limits()).await;
    let store = &*bench.store;
    let queued = left_behind(store, "bash", "echo queued", 0).await;
    let interrupted = left_behind(store, "bash", "echo again", 1).await;
    let dangerous = left_behind(store, "bash", "echo never", 2).await;
    let gone = left_behind(store, "no-such-language", "", 0).await;
    bench.scheduler.recover(bench.decoder()).await.unwrap();
    for (id, output) in [(&queued, "queued\n"), (&interrupted, "again\n")] {
        let report = bench.report(id).await;
        assert_eq!((&report["id"], &report["stdout"]), (&json!(id), &json!(output)));
    }
    for (id, reason, begun) in
        [(&dangerous, "more than once", 2_u64), (&gone, "unknown language", 0)]
    {
        let report = bench.report(id).await;
        assert_eq!((&report["status"], &report["stdout"]), (&json!("error"), &json!("")));
        assert!(report["error"].as_str().unwrap().contains(reason), "{report}");
        let events = all(bench.scheduler.events(id, &nobody(), 0).await.unwrap()).await;
        // After everything that earlier attempts may have told.
        let seq = (begun << 32) + 1;
        assert_eq!(events, [json!({"seq": seq, "type": "report", "report": report})]);
    }
    assert_eq!(store.unfinished().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_what_runs() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("echo begun; sleep 0.2; echo ended").await;
    bench.printed(&ticket.id, "begun").await;
    bench.scheduler.shut_down(TEST_TIMEOUT).await;
    let report = bench.report(&ticket.id).await;
    assert_eq!(report["stdout"], "begun\nended\n");
    let refused = bench.submit(bash("true"), &nobody(), None).await;
    assert_eq!(refused.unwrap_err(), SchedulerError::Stopping);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stop_cannot_wait_for_is_left_to_the_next_start() {
    let bench = Bench::new(SchedulerLimits { concurrency: 1, ..limits() }).await;
    let ticket = bench.accept("echo begun; sleep 50").await;
    bench.printed(&ticket.id, "begun").await;
    let waiting = bench.accept("echo waited").await;
    let stream = bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap();
    let somebody = nobody();
    let waits = bench.scheduler.wait(&waiting.id, &somebody, TEST_TIMEOUT);
    let ((), report) = tokio::join!(bench.scheduler.shut_down(Duration::from_millis(1)), waits);
    // Whoever waited is let go, without a report.
    assert_eq!(report.unwrap().status, Status::Queued);
    assert!(all(stream).await.iter().all(|event| event["type"] != "report"));
    let left = bench.store.unfinished().await.unwrap();
    let ids: Vec<_> = left.iter().map(|record| (&record.id, record.status)).collect();
    assert_eq!(ids, [(&ticket.id, Status::Queued), (&waiting.id, Status::Queued)]);

    let next = bench.restart(limits());
    next.recover(bench.decoder()).await.unwrap();
    let report = next.wait(&waiting.id, &nobody(), TEST_TIMEOUT).await.unwrap();
    assert_eq!(json(&report)["stdout"], "waited\n");
    let report = json(&within(next.cancel(&ticket.id, &nobody())).await.unwrap());
    assert_eq!(report["status"], "cancelled");
    assert_eq!(bench.store.unfinished().await.unwrap(), []);
}
