//! Callbacks.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sandbox_tests::cache::python;
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::receiver::{Received, Receiver};
use crate::server_process::{Server, WAIT_TIMEOUT, output};

/// The proxy does not exist: a callback through it would not arrive.
const SETTINGS: &[(&str, &str)] = &[
    ("SANDBOXD_CALLBACK_ALLOW", "127.0.0.0/8"),
    ("HTTP_PROXY", "http://127.0.0.1:9"),
    ("http_proxy", "http://127.0.0.1:9"),
    ("ALL_PROXY", "http://127.0.0.1:9"),
];

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

/// Starts an execution with a callback, and returns its id.
fn accept(server: &Server, code: &str, url: &str, headers: &[(&str, &str)]) -> String {
    let body = json!({ "language": "python", "code": code, "callback_url": url }).to_string();
    let response = server.send("POST", "/api/v1/execute?wait=false", headers, &body);
    assert_eq!(response.status, 202, "{response:?}");
    response.json()["id"].as_str().expect("an id is text").to_owned()
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text").trim_end().to_owned()
}

fn secret(data: &Path, key: Option<&str>) -> String {
    let mut arguments = vec!["keys", "callback-secret"];
    arguments.extend(key);
    printed(output(data, &arguments))
}

/// Verifies a callback with the `standardwebhooks` package.
fn verify(python: &Path, callback: &Received, secret: &str, body: &str) -> bool {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/verify_callback.py");
    let mut verifier = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python can be started");
    let input_json = json!({ "secret": secret, "headers": callback.headers, "body": body });
    let mut input = verifier.stdin.take().expect("its input is a pipe");
    input.write_all(input_json.to_string().as_bytes()).expect("it reads what it is given");
    drop(input);
    let output = verifier.wait_with_output().expect("it ends");
    let is_verified = output.stdout == b"execution.finished\n";
    let is_refused = String::from_utf8_lossy(&output.stderr).starts_with("not verified: ");
    assert!(is_verified != is_refused, "{output:?}");
    is_verified
}

#[test]
fn the_standardwebhooks_package_verifies_a_callback() {
    let Some(python) = python("webhooks") else {
        skip("callbacks by standardwebhooks", "it is not there: scripts/setup test");
        return;
    };
    let data = data();
    let [(first, key), (second, _)] = ["first", "second"].map(|name| {
        let key = printed(output(data.path(), &["keys", "create", "--name", name]));
        let id = key.split('_').nth(1).expect("a key has an id").to_owned();
        (id, key)
    });
    let server = Server::start_with(data.path(), SETTINGS);
    let receiver = Receiver::start();
    let headers = [("X-API-Key", key.as_str())];
    let id = accept(&server, "print('é')", &receiver.url(), &headers);
    let callback = receiver.next();
    assert_eq!(callback.id(), id);
    let report = server.send("GET", &format!("/api/v1/execute/{id}"), &headers, "").json();
    let event: Value = serde_json::from_str(&callback.body).expect("a body is JSON");
    assert_eq!(event["data"], report);

    let ours = secret(data.path(), Some(&first));
    assert!(verify(&python, &callback, &ours, &callback.body));
    assert!(!verify(&python, &callback, &ours, &callback.body.replacen('é', "e", 1)));
    for other in [Some(&*second), None] {
        let theirs = secret(data.path(), other);
        assert!(!verify(&python, &callback, &theirs, &callback.body), "{other:?}");
    }
    callback.respond("204 No Content");
    let (_, log) = server.stop();
    assert!(!log.contains(ours.trim_start_matches("whsec_")), "the log contains a secret");
}

#[test]
fn an_unacknowledged_callback_is_sent_again_after_a_crash() {
    let data = data();
    let receiver = Receiver::start();
    let server = Server::start_with(data.path(), SETTINGS);
    let id = accept(&server, "print(1)", &receiver.url(), &[]);
    let unanswered = receiver.next();
    server.kill();
    let server = Server::start_with(data.path(), SETTINGS);
    let again = receiver.next();
    assert_eq!((again.id(), &again.body), (&*id, &unanswered.body));
    again.respond("200 OK");
    let counted = "sandboxd_callbacks_total{outcome=\"delivered\"} 1";
    let is_counted =
        || server.get("/metrics").body.lines().any(|line| line == counted).then_some(());
    assert!(wait_for(WAIT_TIMEOUT, is_counted).is_some(), "{}", server.get("/metrics").body);
}

#[test]
fn a_callback_is_sent_after_a_crash_during_the_execution() {
    let data = data();
    let receiver = Receiver::start();
    let server = Server::start_with(data.path(), SETTINGS);
    let id = accept(&server, "import time; time.sleep(1)", &receiver.url(), &[]);
    server.wait_until_running(&id);
    server.kill();
    let _server = Server::start_with(data.path(), SETTINGS);
    let callback = receiver.next();
    assert_eq!(callback.id(), id);
    callback.respond("200 OK");
}

#[test]
fn each_client_has_its_own_secret() {
    let data = data();
    let id = |key: &str| key.split('_').nth(1).expect("a key has an id").to_owned();
    let create = |name| {
        let created = output(data.path(), &["keys", "create", "--name", name]);
        let hint = String::from_utf8_lossy(&created.stderr).into_owned();
        let key = printed(created);
        assert!(hint.contains(&format!("keys callback-secret {}", id(&key))), "{hint}");
        key
    };
    let [first, second] = ["first", "second"].map(create);
    let secrets =
        [None, Some(id(&first)), Some(id(&second))].map(|key| secret(data.path(), key.as_deref()));
    for (n, secret) in secrets.iter().enumerate() {
        assert!(secret.starts_with("whsec_"), "{secret}");
        assert!(!secrets[..n].contains(secret), "two clients share one");
    }
    assert_eq!(secret(data.path(), Some(&id(&first))), secrets[1], "it stays the same");
    let unknown = output(data.path(), &["keys", "callback-secret", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    assert!(unknown.stdout.is_empty(), "{unknown:?}");
}
