use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::server_process::{Server, WAIT_TIMEOUT, create_key, output};

fn status(server: &Server, key: &str) -> u16 {
    server.send("GET", "/api/v1/executions", &[("X-API-Key", key)], "").status
}

/// Waits until requests with this key have this status.
fn wait_for_status(server: &Server, key: &str, expected: u16) {
    let became = wait_for(WAIT_TIMEOUT, || (status(server, key) == expected).then_some(()));
    assert!(became.is_some(), "it is {} instead of {expected}", status(server, key));
}

#[test]
fn a_running_server_applies_created_and_revoked_keys() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let first = create_key(data.path(), "first");
    let server = Server::start(data.path());
    assert_eq!(server.get("/api/v1/executions").status, 401);
    assert_eq!(status(&server, &first), 200);

    let second = create_key(data.path(), "second");
    wait_for_status(&server, &second, 200);
    let id = first.split('_').nth(1).expect("a key has an id");
    let revoked = output(data.path(), &["keys", "revoke", id]);
    assert!(revoked.status.success(), "{revoked:?}");
    wait_for_status(&server, &first, 401);
    assert_eq!(status(&server, &second), 200);

    let listed = output(data.path(), &["keys", "list"]);
    let listed = String::from_utf8(listed.stdout).expect("it prints text");
    assert!(listed.contains(id) && listed.contains("revoked"), "{listed}");
    let (_, log) = server.stop();
    for key in [first, second] {
        let secret = key.rsplit('_').next().expect("a key has a secret");
        assert!(!log.contains(secret), "the log contains a key");
        assert!(!listed.contains(secret), "the list contains a key");
    }
}

#[test]
fn revoking_the_last_key_does_not_open_the_server() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let key = create_key(data.path(), "only");
    let id = key.split('_').nth(1).expect("a key has an id");
    assert!(output(data.path(), &["keys", "revoke", id]).status.success());
    let server = Server::start(data.path());
    assert_eq!(server.get("/api/v1/executions").status, 401);
    assert_eq!(status(&server, &key), 401);
}

#[test]
fn permissions_are_granted_and_withdrawn_by_command() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let run = |arguments: &[&str]| {
        let output = output(data.path(), arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    let key = run(&["keys", "create", "--name", "n", "--allow", "packages,allow_missing"]);
    let key = key.trim_end();
    let id = key.split('_').nth(1).expect("a key has an id");
    let listed = run(&["keys", "list"]);
    assert!(listed.contains("allow_missing,packages"), "{listed}");
    let server = Server::start(data.path());
    let weakened = json!({ "language": "bash", "code": "echo 1", "allow_missing": ["landlock"] });
    let status = || {
        let headers = [("X-API-Key", key)];
        server.send("POST", "/api/v1/execute", &headers, &weakened.to_string()).status
    };
    let becomes = |expected: u16| {
        let became = wait_for(WAIT_TIMEOUT, || (status() == expected).then_some(()));
        assert!(became.is_some(), "it is {} instead of {expected}", status());
    };
    assert_eq!(status(), 200);
    let printed = run(&["keys", "deny", id, "allow_missing"]);
    assert_eq!(printed, format!("{id} has the permissions: packages\n"));
    becomes(403);
    let printed = run(&["keys", "allow", id, "allow_missing,network"]);
    assert_eq!(printed, format!("{id} has the permissions: allow_missing,network,packages\n"));
    becomes(200);
    assert!(!output(data.path(), &["keys", "allow", "nobody", "network"]).status.success());
    assert!(!output(data.path(), &["keys", "allow", id, "everything"]).status.success());
    assert!(run(&["audit"]).contains("key.permissions"));
}

#[test]
fn executions_of_another_key_are_not_found() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let [ours, theirs] = ["ours", "theirs"].map(|name| create_key(data.path(), name));
    let server = Server::start(data.path());
    let body = json!({ "language": "python", "code": "print('secret')" }).to_string();
    let ours = [("X-API-Key", ours.as_str())];
    let theirs = [("X-API-Key", theirs.as_str())];
    let response = server.send("POST", "/api/v1/execute", &ours, &body);
    assert_eq!(response.status, 200, "{response:?}");
    let report = response.json();
    let path = format!("/api/v1/execute/{}", report["id"].as_str().expect("an id is text"));
    assert_eq!(server.send("GET", &path, &ours, "").status, 200);
    assert_eq!(server.send("GET", &path, &theirs, "").status, 404);
    assert_eq!(server.send("DELETE", &path, &theirs, "").status, 404);
    assert_eq!(server.send("GET", &format!("{path}/stream"), &theirs, "").status, 404);
}
