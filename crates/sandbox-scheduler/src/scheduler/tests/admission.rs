use super::*;
use sandbox::Status;
use sandbox_store::ExecutionFilter;

fn named(key: &str, body: &str) -> Idempotency {
    Idempotency { key: key.into(), body_hash: body.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_could_never_start_is_refused() {
    let bench = Bench::new(limits()).await;
    let hungry = Limits::run().with_memory(ByteSize::mib(2048)).unwrap();
    let refused = bench.submit(bash("").limits(hungry), &nobody(), None).await;
    let (needed, max) = (ByteSize::mib(2048), ByteSize::mib(1024));
    assert_eq!(refused.unwrap_err(), SchedulerError::MemoryLimitTooLarge { needed, max });
    assert_eq!(bench.store.unfinished().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_wait_as_may_and_no_key_has_more_than_its_share() {
    const TOO_MANY: SchedulerError = SchedulerError::TooManyUnfinished { max: 2 };
    let few = SchedulerLimits { concurrency: 1, queue_bound: 2, quota_per_key: 2, ..limits() };
    let bench = Bench::new(few).await;
    let code = |client: Identity, code: &'static str| {
        let bench = &bench;
        async move { bench.submit(bash(code), &client, None).await }
    };
    let running = code(client("a"), "echo begun; sleep 50").await.unwrap();
    let mut stream = bench.scheduler.events(&running.id, &client("a"), 2).await.unwrap();
    within(stream.next()).await.unwrap().unwrap();
    code(client("a"), "true").await.unwrap();
    assert_eq!(code(client("a"), "true").await.unwrap_err(), TOO_MANY);
    let last = code(client("b"), "true").await.unwrap();
    assert_eq!(code(client("c"), "true").await.unwrap_err(), SchedulerError::QueueFull { max: 2 });
    bench.scheduler.cancel(&running.id, &client("a")).await.unwrap();
    let report = json(&bench.scheduler.wait(&last.id, &client("b"), TEST_TIMEOUT).await.unwrap());
    assert_eq!(report["status"], "completed");
    code(client("c"), "true").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_holds_no_more_memory_than_it_may() {
    let few = SchedulerLimits {
        concurrency: 1,
        queue_memory: ByteSize::kib(150),
        queue_memory_per_key: ByteSize::kib(100),
        ..limits()
    };
    let bench = Bench::new(few).await;
    let input = |client: Identity| {
        let bench = &bench;
        let request = bash("echo begun; wc -c; sleep 50").stdin("x".repeat(40 << 10).into_bytes());
        async move { bench.submit(request, &client, None).await }
    };
    let running = input(client("a")).await.unwrap();
    let mut stream = bench.scheduler.events(&running.id, &client("a"), 2).await.unwrap();
    within(stream.next()).await.unwrap().unwrap();
    let of_client = SchedulerError::TooManyWaitingBytesOfClient { max: ByteSize::kib(100) };
    let of_all = SchedulerError::TooManyWaitingBytes { max: ByteSize::kib(150) };
    // What runs waits no more: two of its size fit, and a third does not.
    let first = input(client("a")).await.unwrap();
    input(client("a")).await.unwrap();
    assert_eq!(input(client("a")).await.unwrap_err(), of_client);
    let others = input(client("b")).await.unwrap();
    for other in ["b", "c"] {
        assert_eq!(input(client(other)).await.unwrap_err(), of_all, "{other}");
    }
    // Clients without a key are bounded by what all have together.
    assert_eq!(input(nobody()).await.unwrap_err(), of_all);
    // A small one still fits.
    bench.submit(bash("true"), &client("c"), None).await.unwrap();
    bench.scheduler.cancel(&first.id, &client("a")).await.unwrap();
    input(client("a")).await.unwrap();
    bench.scheduler.cancel(&others.id, &client("b")).await.unwrap();
    input(client("c")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_twice_under_one_name_runs_once() {
    let bench = Bench::new(SchedulerLimits { quota_per_key: 1, ..limits() }).await;
    let ask = |client: Identity, name| {
        let bench = &bench;
        async move { bench.submit(bash("echo begun; sleep 50"), &client, Some(name)).await }
    };
    let first = ask(client("a"), named("n", "x")).await.unwrap();
    // Also when there would be no room for another.
    let again = ask(client("a"), named("n", "x")).await.unwrap();
    assert_eq!((&again.id, again.is_new), (&first.id, false));
    let other = ask(client("a"), named("n", "y")).await.unwrap_err();
    assert_eq!(other, SchedulerError::IdempotencyConflict);
    // Another client's names are its own.
    let others = ask(client("b"), named("n", "y")).await.unwrap();
    assert!(others.is_new);
    bench.scheduler.cancel(&others.id, &client("b")).await.unwrap();
    let report = json(&bench.scheduler.cancel(&first.id, &client("a")).await.unwrap());
    // And when it is over.
    let again = ask(client("a"), named("n", "x")).await.unwrap();
    assert_eq!((&json!(again.id), again.is_new), (&report["id"], false));
    assert_eq!(
        ask(client("a"), named("n", "y")).await.unwrap_err(),
        SchedulerError::IdempotencyConflict
    );
    assert!(ask(client("a"), named("m", "y")).await.unwrap().is_new);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_with_events_is_stored_before_its_end_only_if_it_waits() {
    let bench = Bench::new(SchedulerLimits { concurrency: 1, ..limits() }).await;
    let submit = async |code| {
        let submission = bench.submission(bash(code));
        bench.scheduler.submit(submission, None, AnswerWith::Events).await.unwrap()
    };
    let first = submit("echo begun; sleep 50").await;
    assert!(first.execution.as_ref().unwrap().is_started());
    let second = submit("echo second").await;
    let stored = bench.store.summary(&second.id).await.unwrap();
    assert_eq!(stored.unwrap().status, Status::Queued);
    bench.printed(&first.id, "begun").await;
    bench.scheduler.cancel(&first.id, &nobody()).await.unwrap();
    for (ticket, text) in [(first, "begun\n"), (second, "second\n")] {
        let events = bench.scheduler.events_of_ticket(&ticket, &nobody()).await.unwrap();
        assert_eq!(printed(&all(events).await), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_one_name_that_come_together_run_once() {
    let bench = Bench::new(limits()).await;
    let submit = async |name: Idempotency, answer| {
        let submission =
            Submission { idempotency: Some(name), ..bench.submission(bash("echo once; sleep 50")) };
        bench.scheduler.submit(submission, None, answer).await
    };
    for round in 0..5 {
        let name = || named(&round.to_string(), "x");
        let (a, b, c, d) = tokio::join!(
            submit(name(), AnswerWith::Events),
            submit(name(), AnswerWith::Id),
            submit(name(), AnswerWith::Events),
            submit(name(), AnswerWith::Report(TEST_TIMEOUT)),
        );
        let tickets = [a, b, c, d].map(Result::unwrap);
        assert_eq!(tickets.iter().filter(|ticket| ticket.is_new).count(), 1, "{tickets:?}");
        assert!(tickets.iter().all(|ticket| ticket.id == tickets[0].id), "{tickets:?}");
        let conflict = submit(named(&round.to_string(), "y"), AnswerWith::Events).await;
        assert_eq!(conflict.unwrap_err(), SchedulerError::IdempotencyConflict);
        bench.scheduler.cancel(&tickets[0].id, &nobody()).await.unwrap();
        assert_eq!(submit(name(), AnswerWith::Events).await.unwrap().id, tickets[0].id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_anothers_is_not_there() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.submit(bash("echo begun; sleep 50"), &client("a"), None).await.unwrap();
    for is_over in [false, true] {
        for stranger in [client("b"), nobody()] {
            let scheduler = &bench.scheduler;
            let id = &ticket.id;
            let errors = [
                scheduler.report(id, &stranger).await.err(),
                scheduler.wait(id, &stranger, TEST_TIMEOUT).await.err(),
                scheduler.cancel(id, &stranger).await.err(),
                scheduler.events(id, &stranger, 0).await.err(),
            ];
            for error in errors {
                assert_eq!(error, Some(SchedulerError::NotFound(id.clone())));
            }
        }
        let admin = Identity {
            key: Some("c".into()),
            scopes: vec![Scope::Admin],
            permissions: Permissions::new(),
        };
        assert_eq!(
            json(&bench.scheduler.report(&ticket.id, &admin).await.unwrap())["id"],
            json!(ticket.id)
        );
        if !is_over {
            within(bench.scheduler.cancel(&ticket.id, &client("a"))).await.unwrap();
        }
    }
    let of = |owner: &str| ExecutionFilter {
        owner: Some(Some(owner.into())),
        limit: 10,
        ..ExecutionFilter::default()
    };
    assert_eq!(bench.scheduler.list(of("a")).await.unwrap().executions.len(), 1);
    assert_eq!(bench.scheduler.list(of("b")).await.unwrap().executions.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_told_of_is_stored_when_it_lasts_or_is_promised() {
    let bench = Bench::new(SchedulerLimits { concurrency: 1, ..limits() }).await;
    let accept = |code| {
        let submission = bench.submission(bash(code));
        bench.scheduler.submit(submission, None, AnswerWith::Report(TEST_TIMEOUT))
    };
    let running = accept("echo begun; sleep 50").await.unwrap();
    bench.printed(&running.id, "begun").await;
    let stored = within(async {
        loop {
            if let Some(stored) = bench.store.execution(&running.id).await.unwrap() {
                return stored;
            }
        }
    })
    .await;
    assert_eq!((stored.status, stored.attempts), (sandbox::Status::Running, 1));

    let [promised, cancelled, left] =
        [accept("true").await, accept("true").await, accept("true").await].map(Result::unwrap);
    for ticket in [&promised, &cancelled, &left] {
        assert_eq!(bench.store.execution(&ticket.id).await.unwrap(), None);
    }
    bench.scheduler.ensure_stored(&promised.id).await.unwrap();
    assert!(bench.store.execution(&promised.id).await.unwrap().is_some());
    bench.scheduler.cancel(&cancelled.id, &nobody()).await.unwrap();
    let over = bench.store.execution(&cancelled.id).await.unwrap().unwrap();
    assert_eq!(over.status, sandbox::Status::Cancelled);
    // Its client hears its id when the server stops.
    bench.scheduler.shut_down(Duration::ZERO).await;
    let waits = bench.store.execution(&left.id).await.unwrap().unwrap();
    assert_eq!((waits.status, waits.attempts), (sandbox::Status::Queued, 0));
}
