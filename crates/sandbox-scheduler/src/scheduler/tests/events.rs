use super::*;

/// What a program prints that counts so far.
fn counted(most: u32) -> String {
    let lines: Vec<_> = (1..=most).map(|number| number.to_string()).collect();
    lines.join("\n") + "\n"
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_at_any_time_see_the_same() {
    let bench = Bench::new(limits()).await;
    let code =
        "echo one; read -t 0.2 < <(sleep 1); for i in {1..300}; do echo $i; done; echo two >&2";
    let ticket = bench.accept(code).await;
    let early = bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap();
    let mut slow = bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap();
    let first = within(slow.next()).await.unwrap().unwrap();
    assert_eq!(first.json, r#"{"seq":1,"type":"queued"}"#);
    let early = all(early).await;
    let report = bench.report(&ticket.id).await;
    // The slow one reads on when everything is over and the hub has forgotten the execution.
    let slow = all(slow).await;
    let late = all(bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap()).await;
    assert_eq!(early, late);
    assert_eq!(early[1..], slow);
    assert_eq!(numbers(&early), (1..=early.len() as u64).collect::<Vec<_>>());
    let expected = counted(300);
    assert_eq!(printed(&early), format!("one\n{expected}two\n"));
    let last = early.last().unwrap();
    assert_eq!((&last["type"], &last["report"]), (&json!("report"), &report));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_drops_and_resumes_misses_nothing() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("for i in {1..40}; do echo $i; sleep 0.01; done").await;
    let mut seen = Vec::new();
    let mut after = 0;
    // One event each, live at first and from the store at the end.
    loop {
        let mut stream = bench.scheduler.events(&ticket.id, &nobody(), after).await.unwrap();
        let Some(event) = within(stream.next()).await else {
            break;
        };
        let event = event.unwrap();
        after = event.seq;
        seen.push(serde_json::from_str(&event.json).unwrap());
    }
    assert_eq!(numbers(&seen), (1..=after).collect::<Vec<_>>());
    let expected = counted(40);
    assert_eq!(printed(&seen), expected);
    assert_eq!(seen.last().unwrap()["type"], "report");
    let beyond = bench.scheduler.events(&ticket.id, &nobody(), after + 1000).await.unwrap();
    assert_eq!(all(beyond).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_an_event_may_be_given_up_and_begun_again() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("for i in {1..20}; do echo $i; sleep 0.01; done").await;
    let mut stream = bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap();
    let mut seen = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(3), stream.next()).await {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(event)) => seen.push(serde_json::from_str(&event.unwrap().json).unwrap()),
        }
    }
    assert_eq!(numbers(&seen), (1..=seen.len() as u64).collect::<Vec<_>>());
    let expected = counted(20);
    assert_eq!(printed(&seen), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_nobody_looks_at_is_few_events() {
    let bench = Bench::new(limits()).await;
    let ticket = bench.accept("for i in {1..2000}; do echo $i; done").await;
    bench.report(&ticket.id).await;
    let events = all(bench.scheduler.events(&ticket.id, &nobody(), 0).await.unwrap()).await;
    let expected = counted(2000);
    assert_eq!(printed(&events), expected);
    assert_eq!(events.len(), 4, "{events:?}");
}
