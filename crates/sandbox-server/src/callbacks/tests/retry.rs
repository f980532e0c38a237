use super::*;

#[tokio::test]
async fn a_report_arrives_whole_and_once() {
    let mut receiver = Receiver::start([]).await;
    let bench = Bench::new(Setup::default()).await;
    let id = bench.finished(&format!("http://127.0.0.1:{}/path?a=b", receiver.port)).await;
    let callback = receiver.next().await;
    assert_eq!(callback.path, "/path");
    assert_eq!(callback.header("content-type"), "application/json");
    assert_eq!(callback.header("webhook-id"), id);
    let body: Value = serde_json::from_slice(&callback.body).unwrap();
    let finished = bench.store.execution(&id).await.unwrap().unwrap().finished_at.unwrap();
    let timestamp = finished.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let expected =
        json!({ "type": "execution.finished", "timestamp": timestamp, "data": report(&id) });
    assert_eq!(body, expected);
    bench.counted("delivered", 1).await;
    // The next one shows that the first is not sent again: it was due before.
    let next = bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    assert_eq!(receiver.next().await.header("webhook-id"), next);
    bench.counted("delivered", 2).await;
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn what_fails_is_sent_again_until_it_arrives() {
    let failures = [Reply::Status(500), Reply::Status(404), Reply::Status(429)];
    let mut receiver = Receiver::start(failures).await;
    let bench = Bench::new(Setup::default()).await;
    let id = bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let callback = receiver.next().await;
        assert_eq!(callback.header("webhook-id"), id);
        bodies.push(callback.body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "each try carries the same");
    bench.counted("failed", 3).await;
    bench.counted("delivered", 1).await;
    let log = bench.store.audit_log(10).await.unwrap();
    assert!(log.iter().all(|record| record.action == "execute"), "{log:?}");
}

#[tokio::test]
async fn what_fails_too_often_is_given_up() {
    let mut receiver = Receiver::start([Reply::Status(503); 10]).await;
    let bench = Bench::new(Setup { retries: 2, ..Setup::default() }).await;
    let id = bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    for _ in 0..3 {
        receiver.next().await;
    }
    let given_up = bench.given_up().await;
    assert_eq!((&*given_up.action, &*given_up.subject), ("callback.given_up", &*id));
    assert_eq!(
        (&given_up.detail["host"], &given_up.detail["tries"]),
        (&json!("127.0.0.1"), &json!(3))
    );
    assert!(given_up.detail["reason"].as_str().unwrap().contains("503"), "{given_up:?}");
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_receiver_that_wants_no_more_is_left_alone() {
    let mut receiver = Receiver::start([Reply::Status(410)]).await;
    let bench = Bench::new(Setup::default()).await;
    bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    receiver.next().await;
    let given_up = bench.given_up().await;
    assert_eq!(given_up.detail["tries"], 1);
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut receiver = Receiver::start([Reply::Redirect]).await;
    let bench = Bench::new(Setup::default()).await;
    bench.finished(&format!("http://127.0.0.1:{}/here", receiver.port)).await;
    for _ in 0..2 {
        assert_eq!(receiver.next().await.path, "/here");
    }
    bench.counted("delivered", 1).await;
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn an_answer_that_never_stops_is_an_answer() {
    let receiver = Receiver::start([Reply::Endless]).await;
    let bench = Bench::new(Setup { retries: 0, ..Setup::default() }).await;
    bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    bench.counted("delivered", 1).await;
}

#[tokio::test]
async fn a_receiver_that_takes_too_long_has_failed() {
    let mut receiver = Receiver::start([Reply::Never]).await;
    // Long enough for the second answer, which comes at once.
    let timeout = Duration::from_secs(5);
    let bench = Bench::new(Setup { timeout, ..Setup::default() }).await;
    bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    receiver.next().await;
    bench.counted("failed", 1).await;
    receiver.next().await;
    bench.counted("delivered", 1).await;
}
