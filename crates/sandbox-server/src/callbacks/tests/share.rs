use std::collections::HashSet;

use super::*;

/// More is due to it, and for longer, than is sent at once.
#[tokio::test]
async fn a_receiver_that_never_answers_holds_up_nobody_else() {
    let mut silent = Receiver::start([Reply::Never; 20]).await;
    let mut other = Receiver::start([]).await;
    let limits = Limits { total: 4, per_owner: 4, per_host: 2 };
    let bench = Bench::new(Setup { limits, ..Setup::default() }).await;
    for _ in 0..10 {
        bench.finished(&format!("http://127.0.0.1:{}/", silent.port)).await;
    }
    for _ in 0..2 {
        silent.next().await;
    }
    for _ in 0..10 {
        let id = bench.finished(&format!("http://localhost:{}/", other.port)).await;
        assert_eq!(other.next().await.header("webhook-id"), id);
    }
    assert!(silent.is_quiet(), "it has two places and no more");
}

/// While some end, others are looked for: what just ended must not be taken for due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_is_sent_once() {
    const MANY: u32 = 200;
    let mut receiver = Receiver::start([]).await;
    let limits = Limits { total: 8, per_owner: 8, per_host: 8 };
    let bench = Bench::new(Setup { limits, ..Setup::default() }).await;
    let mut ids = HashSet::new();
    for _ in 0..MANY {
        ids.insert(bench.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await);
    }
    for _ in 0..MANY {
        let callback = receiver.next().await;
        assert!(ids.remove(callback.header("webhook-id")), "it comes a second time");
    }
    bench.counted("delivered", MANY).await;
    assert!(receiver.is_quiet());
}
