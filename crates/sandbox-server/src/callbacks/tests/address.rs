use super::*;

/// Each refusal has a pair: the same is sent where it is permitted.
#[tokio::test]
async fn a_name_is_judged_by_the_addresses_it_stands_for() {
    let mut receiver = Receiver::start([]).await;
    let url = format!("http://localhost:{}/", receiver.port);
    let closed = Bench::new(Setup { allow: "", ..Setup::default() }).await;
    closed.finished(&url).await;
    let given_up = closed.given_up().await;
    let reason = given_up.detail["reason"].as_str().unwrap();
    assert!(reason.contains("is a loopback address"), "{reason}");
    assert_eq!(given_up.detail["tries"], 1, "it is not tried again");
    assert!(receiver.is_quiet());

    let open = Bench::new(Setup::default()).await;
    let id = open.finished(&url).await;
    assert_eq!(receiver.next().await.header("webhook-id"), id);
}

/// It was permitted when it was accepted.
#[tokio::test]
async fn an_address_is_checked_again_when_it_is_used() {
    let mut receiver = Receiver::start([]).await;
    let closed = Bench::new(Setup { allow: "10.0.0.0/8", ..Setup::default() }).await;
    closed.finished(&format!("http://127.0.0.1:{}/", receiver.port)).await;
    let given_up = closed.given_up().await;
    let reason = given_up.detail["reason"].as_str().unwrap();
    assert!(reason.starts_with("127.0.0.1 is a loopback address"), "{reason}");
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (mut receiver, certificate) = Receiver::start_tls().await;
    let url = format!("https://localhost:{}/", receiver.port);
    let bench = Bench::new(Setup { retries: 0, ..Setup::default() }).await;
    bench.finished(&url).await;
    let given_up = bench.given_up().await;
    let reason = given_up.detail["reason"].as_str().unwrap();
    assert!(reason.contains("UnknownIssuer"), "{reason}");
    assert!(receiver.is_quiet());

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let trusting = Bench::new(Setup { roots, ..Setup::default() }).await;
    let id = trusting.finished(&url).await;
    assert_eq!(receiver.next().await.header("webhook-id"), id);
}

/// What is logged and audited must not tell what the URL may have kept secret.
#[tokio::test]
async fn reasons_do_not_repeat_the_url() {
    // Nobody listens on a port that was just free.
    let port = Receiver::start([]).await.port;
    let bench = Bench::new(Setup { retries: 0, ..Setup::default() }).await;
    bench.finished(&format!("http://127.0.0.1:{port}/hook?token=swordfish")).await;
    let given_up = bench.given_up().await;
    assert!(!format!("{given_up:?}").contains("swordfish"), "{given_up:?}");
}
