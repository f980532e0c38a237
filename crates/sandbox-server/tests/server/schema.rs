//! The OpenAPI document against the server that serves it, by a tool that makes requests from the one
//! and looks at the answers of the other. What it may let pass is in `tests/schemathesis`.

use std::path::Path;
use std::process::Command;

use sandbox_tests::skip::skip;
use sandbox_tests::tools::in_cache;

use crate::server::{Server, output};

/// Nobody limits the tool, and it does not wait for programs.
const SETTINGS: &[(&str, &str)] =
    &[("SANDBOXD_REQUESTS_PER_MINUTE", "0"), ("SANDBOXD_WAIT_LIMIT", "2s")];

const EVERYTHING: &str = "examples,coverage,fuzzing,stateful";
/// What is at the edges of each value is the same with keys and without, and takes the longest.
const WITHOUT_EDGES: &str = "examples,fuzzing,stateful";

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for temporary files")
}

/// Runs the tool in these phases, with so many cases for each operation.
fn check(name: &str, server: &Server, key: &str, phases: &str, cases: &str) {
    let Some(tool) = in_cache("schemathesis/bin/schemathesis") else {
        skip(name, "there is no schemathesis in the cache: scripts/setup test installs it");
        return;
    };
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    // It keeps notes of what it saw in the current directory.
    let notes = data();
    let checked = Command::new(tool)
        .current_dir(notes.path())
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
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    // It succeeds as well if it finds nothing to do.
    assert!(said.contains("Stateful"), "{said}");
}

#[test]
fn a_server_with_keys_does_what_its_document_says() {
    let data = data();
    let made = output(data.path(), &["keys", "create", "--name", "tool", "--scope", "admin"]);
    let key = String::from_utf8(made.stdout).expect("a key is text");
    let server = Server::start_with(data.path(), SETTINGS);
    check("the document of a server with keys", &server, key.trim_end(), EVERYTHING, "20");
}

#[test]
fn a_server_without_keys_does_what_its_document_says() {
    let data = data();
    let server = Server::start_with(data.path(), SETTINGS);
    check("the document of a server without keys", &server, "none", WITHOUT_EDGES, "10");
}
