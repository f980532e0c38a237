use std::sync::mpsc;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_runs_and_is_remembered() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("echo hello; echo no >&2; exit 3").await;
    assert!(ticket.is_new);
    let report = bench.report(&ticket.id).await;
    assert_eq!(report["id"], json!(ticket.id));
    assert_eq!(report["status"], "runtime_error");
    assert_eq!((&report["stdout"], &report["exit_code"]), (&json!("hello\n"), &json!(3)));
    assert!(report["timings_ms"]["queue"].as_f64().unwrap() > 0.0);
    let record = bench.store.execution(&ticket.id).await.unwrap().unwrap();
    assert_eq!((record.status.name(), record.attempts), ("runtime_error", 1));
    assert!(record.started_at.is_some() && record.finished_at.is_some());
    assert_eq!(record.report, Some(report.clone()));
    assert_eq!(json(&bench.scheduler.report(&ticket.id, &nobody()).await.unwrap()), report);
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_ends_before_a_long_program_does() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("echo begun; read never < <(sleep 50)").await;
    bench.printed(&ticket.id, "begun").await;
    let report =
        json(&bench.scheduler.wait(&ticket.id, &nobody(), Duration::from_millis(1)).await.unwrap());
    assert_eq!((&report["status"], &report["exit_code"]), (&json!("running"), &Value::Null));
    let report = json(&within(bench.scheduler.cancel(&ticket.id, &nobody())).await.unwrap());
    assert_eq!((&report["status"], &report["exit_code"]), (&json!("cancelled"), &json!(-1)));
    assert_eq!(report["stdout"], "begun\n");
    // Cancelling what is over changes nothing.
    assert_eq!(json(&bench.scheduler.cancel(&ticket.id, &nobody()).await.unwrap()), report);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_can_be_cancelled_and_never_runs() {
    let bench = Bench::new(SchedulerLimits { concurrency: 1, ..limits() }).await;
    let running = bench.accept("echo begun; sleep 50").await;
    bench.printed(&running.id, "begun").await;
    let waiting = bench.accept("echo never").await;
    let report = json(&bench.scheduler.report(&waiting.id, &nobody()).await.unwrap());
    assert_eq!(report["status"], "queued");
    let report = json(&within(bench.scheduler.cancel(&waiting.id, &nobody())).await.unwrap());
    assert_eq!((&report["status"], &report["stdout"]), (&json!("cancelled"), &json!("")));
    assert_eq!(report["id"], json!(waiting.id));
    let record = bench.store.execution(&waiting.id).await.unwrap().unwrap();
    assert_eq!((record.status.name(), record.attempts), ("cancelled", 0));
    within(bench.scheduler.cancel(&running.id, &nobody())).await.unwrap();
    let log = bench.store.audit_log(10).await.unwrap();
    assert_eq!(log.iter().filter(|entry| entry.action == "cancel").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_execution_leaves_an_audit_record() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.submit(bash("true"), &client("key"), None).await.unwrap();
    let report =
        json(&bench.scheduler.wait(&ticket.id, &client("key"), TEST_TIMEOUT).await.unwrap());
    assert_eq!(report["status"], "completed");
    // It is written after the client was told; a stop waits for it.
    bench.scheduler.shut_down(TEST_TIMEOUT).await;
    let log = bench.store.audit_log(10).await.unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].action.as_str(), log[0].actor.as_deref()), ("execute", Some("key")));
    assert_eq!(log[0].subject, ticket.id);
    assert_eq!(log[0].detail, json!({"language": "bash", "status": "completed"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_promised_only_once() {
    // Each may use more than half of what there is.
    let bench = Bench::new(SchedulerLimits { memory_budget: ByteSize::mib(100), ..limits() }).await;
    let first = bench.accept("echo begun; sleep 50").await;
    bench.printed(&first.id, "begun").await;
    let second = bench.accept("echo begun").await;
    let report = json(&bench.scheduler.report(&second.id, &nobody()).await.unwrap());
    assert_eq!(report["status"], "queued");
    within(bench.scheduler.cancel(&first.id, &nobody())).await.unwrap();
    assert_eq!(bench.report(&second.id).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_library_refuses_late_is_an_end_too() {
    let bench = Bench::new(limits()).await;
    let request = bash("true").packages(["six"]);
    let ticket = bench.submit(request, &nobody(), None).await.unwrap();
    let report = bench.report(&ticket.id).await;
    assert_eq!(report["status"], "error");
    assert!(report["error"].as_str().unwrap().len() > 10, "{report}");
    let events = all(bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap()).await;
    assert_eq!(events.last().unwrap()["report"], report);
}

/// Nobody shuts it down in order, and its tasks end wherever they are.
#[test]
fn a_server_that_is_dropped_in_the_middle_comes_to_an_end() {
    let (over, is_over) = mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..20 {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let bench = runtime.block_on(async {
                let bench = Bench::new(limits()).await;
                bench.accept("echo begun; sleep 50").await;
                bench
            });
            drop(bench);
            // Waits for the threads that carry something out.
            drop(runtime);
            over.send(()).unwrap();
        }
    });
    for round in 0..20 {
        is_over.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("round {round} does not end"));
    }
}
