use serde_json::{Value, json};

use crate::server_process::{Server, create_key, output};

fn audit(data: &std::path::Path, arguments: &[&str]) -> String {
    let output = output(data, &[&["audit"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn executions_cancellations_and_keys_are_in_the_audit_log() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let data = data.path();
    let key = create_key(data, "the \u{1b}[31mred\u{1b}[0m team");
    let id = key.split('_').nth(1).expect("a key has an id");
    let server = Server::start(data);
    let headers = [("X-API-Key", key.as_str())];
    let body = json!({ "language": "python", "code": "import time; time.sleep(60)" }).to_string();
    let accepted = server.send("POST", "/api/v1/execute?wait=false", &headers, &body).json();
    let execution = accepted["id"].as_str().expect("an id is text");
    let path = format!("/api/v1/execute/{execution}");
    let cancelled = server.send("DELETE", &path, &headers, "");
    assert_eq!(cancelled.json()["status"], "cancelled");
    server.stop();
    assert!(output(data, &["keys", "revoke", id]).status.success());

    let text = audit(data, &["--json"]);
    let entries: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let logged: Vec<_> = entries
        .iter()
        .map(|entry| (entry["action"].clone(), entry["key"].clone(), entry["subject"].clone()))
        .collect();
    let expected = [
        (json!("key.revoke"), Value::Null, json!(id)),
        (json!("execute"), json!(id), json!(execution)),
        (json!("cancel"), json!(id), json!(execution)),
        (json!("key.create"), Value::Null, json!(id)),
    ];
    assert_eq!(logged, expected);
    assert_eq!(entries[1]["detail"], json!({ "language": "python", "status": "cancelled" }));

    let secret = key.rsplit('_').next().expect("a key has a secret");
    let columns = audit(data, &[]);
    assert_eq!(columns.lines().count(), 5, "{columns}");
    assert!(!columns.contains('\u{1b}') && !columns.contains(secret), "{columns:?}");
    assert_eq!(audit(data, &["--limit", "1", "--json"]).lines().count(), 1);
    assert!(!output(data, &["audit", "--limit", "0"]).status.success());
}
