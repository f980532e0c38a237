//! Tests the server against its OpenAPI document with Schemathesis, which generates requests and checks the responses.
//! The exceptions are in `tests/schemathesis`.

use std::path::Path;
use std::process::Command;

use sandbox_tests::cache::installed;
use sandbox_tests::skip::skip;

use crate::server_process::{Server, output};

/// No rate limit, and a short wait.
const SETTINGS: &[(&str, &str)] =
    &[("SANDBOXD_REQUESTS_PER_MINUTE", "0"), ("SANDBOXD_WAIT_LIMIT", "2s")];

const ALL_PHASES: &str = "examples,coverage,fuzzing,stateful";
/// Without the coverage phase, the slowest one, whose results do not depend on keys.
const WITHOUT_COVERAGE: &str = "examples,fuzzing,stateful";

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

/// Runs Schemathesis with these phases and this number of cases for each operation.
fn check(name: &str, server: &Server, key: &str, phases: &str, cases: &str) {
    let Some(tool) = installed("schemathesis/bin/schemathesis") else {
        skip(name, "there is no schemathesis in the cache: scripts/setup test installs it");
        return;
    };
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    // It writes files to the current directory.
    let directory = data();
    let checked = Command::new(tool)
        .current_dir(directory.path())
        .env("PYTHONPATH", &settings)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("SANDBOXD_TEST_KEY", key)
        .arg("--config-file")
        .arg(settings.join("schemathesis.toml"))
        .args(["run", "--phases", phases, "--max-examples", cases])
        .arg(format!("http://{}/openapi.json", server.address))
        .output()
        .expect("schemathesis can be started");
    let stdout = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{stdout}{}", String::from_utf8_lossy(&checked.stderr));
    // It succeeds without any test case too.
    assert!(stdout.contains("Stateful"), "{stdout}");
}

#[test]
fn a_server_with_keys_does_what_its_document_says() {
    let data = data();
    let made = output(data.path(), &["keys", "create", "--name", "tool", "--scope", "admin"]);
    let key = String::from_utf8(made.stdout).expect("a key is text");
    let server = Server::start_with(data.path(), SETTINGS);
    check("the document of a server with keys", &server, key.trim_end(), ALL_PHASES, "20");
}

#[test]
fn a_server_without_keys_does_what_its_document_says() {
    let data = data();
    let server = Server::start_with(data.path(), SETTINGS);
    check("the document of a server without keys", &server, "none", WITHOUT_COVERAGE, "10");
}
