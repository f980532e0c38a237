//! What a key can find out about another one from what is kept.

use super::*;

fn pin(number: u32) -> Value {
    let code = format!("#include <stdio.h>\nint main(void) {{ puts(\"pin {number}\"); }}\n");
    json!({"language": "c", "code": code})
}

/// Whether the compile stage of an execution was answered from the cache.
async fn is_cached(server: &Server, key: Option<&str>, body: &Value) -> bool {
    let headers: Vec<_> = key.map(|key| ("x-api-key", key)).into_iter().collect();
    let report = server.post_with("/api/v1/execute", body, &headers).await.expect(200);
    assert_eq!(report["status"], "completed", "{report}");
    report["stages"][0]["cached"].as_bool().unwrap()
}

/// Waits until what a key compiled is kept, which happens after its answer.
async fn compile_until_kept(server: &Server, key: &str, body: &Value) {
    let kept = async { while !is_cached(server, Some(key), body).await {} };
    tokio::time::timeout(std::time::Duration::from_mins(2), kept).await.expect("it is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_not_learn_what_another_one_compiled() {
    let server = Server::start().await;
    let [one, other] = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    compile_until_kept(&server, &one, &pin(4711)).await;
    for guess in [4710, 4711] {
        assert!(!is_cached(&server, Some(&other), &pin(guess)).await, "{guess}");
    }
    // What the other one made is kept for it, beside the first one's.
    compile_until_kept(&server, &other, &pin(4711)).await;
    assert!(is_cached(&server, Some(&one), &pin(4711)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_let_keys_share_compiled_programs() {
    let server = Server::with(|config| config.shared_caches.compiled = true).await;
    let [one, other] = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    compile_until_kept(&server, &one, &pin(1)).await;
    assert!(is_cached(&server, Some(&other), &pin(1)).await);
}
