//! A key cannot learn from shared caches what another key compiled.

use super::*;

fn pin(number: u32) -> Value {
    let code = format!("#include <stdio.h>\nint main(void) {{ puts(\"pin {number}\"); }}\n");
    json!({"language": "c", "code": code})
}

/// Runs a program; whether the result of the compile stage came from the cache.
async fn is_cached(server: &Server, key: Option<&str>, body: &Value) -> bool {
    let headers: Vec<_> = key.map(|key| ("x-api-key", key)).into_iter().collect();
    let report = server.post_with("/api/v1/execute", body, &headers).await.expect(200);
    assert_eq!(report["status"], "completed", "{report}");
    report["stages"][0]["cached"].as_bool().unwrap()
}

/// Runs a program until its compiled form is in the cache, which happens after the response.
async fn compile_until_cached(server: &Server, key: &str, body: &Value) {
    let cached = async { while !is_cached(server, Some(key), body).await {} };
    tokio::time::timeout(std::time::Duration::from_mins(2), cached).await.expect("it is cached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_not_learn_what_another_one_compiled() {
    let server = Server::start().await;
    let [one, other] = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    compile_until_cached(&server, &one, &pin(4711)).await;
    for guess in [4710, 4711] {
        assert!(!is_cached(&server, Some(&other), &pin(guess)).await, "{guess}");
    }
    // Each key has its own cache entry.
    compile_until_cached(&server, &other, &pin(4711)).await;
    assert!(is_cached(&server, Some(&one), &pin(4711)).await);
    let mut anew = pin(4711);
    anew["compile_cache"] = json!(false);
    assert!(!is_cached(&server, Some(&one), &anew).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_let_keys_share_compiled_programs() {
    let server = Server::with(|config| config.shared_caches.compiled = true).await;
    let [one, other] = [server.key(&[Scope::Execute]).await, server.key(&[Scope::Execute]).await];
    compile_until_cached(&server, &one, &pin(1)).await;
    assert!(is_cached(&server, Some(&other), &pin(1)).await);
}
