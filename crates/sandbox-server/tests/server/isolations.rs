//! A server with the isolation backend runc: start, stop and crash.

use std::path::{Path, PathBuf};

use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_until_empty;
use serde_json::json;

use crate::server_process::{Residue, Server, WAIT_TIMEOUT, command};

const RUNC: (&str, &str) = ("SANDBOXD_ISOLATIONS", "native,runc");
const QUICK_STOP: (&str, &str) = ("SANDBOXD_SHUTDOWN_DEADLINE", "100ms");

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn has_runc(test: &str) -> bool {
    let found = sandbox::Sandbox::builder().isolations();
    let runc = found.iter().find(|status| status.isolation == sandbox::Isolation::Runc);
    let reason = runc.and_then(|status| status.unavailable.clone());
    if let Some(reason) = &reason {
        skip(test, reason);
    }
    reason.is_none()
}

fn accept(server: &Server, code: &str) -> String {
    let body = json!({"language": "bash", "code": code, "isolation": "runc"}).to_string();
    let response = server.send("POST", "/api/v1/execute?wait=false", &[], &body);
    assert_eq!(response.status, 202, "{response:?}");
    response.json()["id"].as_str().expect("an id is text").to_owned()
}

/// Files of this server's containers on the host.
fn container_files(server: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/run/sandbox-run-oci").into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains(&format!(".{server}."));
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

#[test]
fn containers_end_with_the_server_and_executions_run_again() {
    if !has_runc("containers of a server that stops") {
        return;
    }
    let data = data();
    let server = Server::start_with(data.path(), &[RUNC, QUICK_STOP]);
    let id = accept(&server, "echo begun; sleep 3; echo done");
    server.wait_until_running(&id);
    let (residue, number) = (Residue::of(&server), server.id());
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    residue.assert_gone();
    assert_eq!(container_files(number), [] as [PathBuf; 0]);

    let server = Server::start_with(data.path(), &[RUNC]);
    let report = server.final_report(&id);
    assert_eq!(
        (&report["isolation"], &report["stdout"]),
        (&"runc".into(), &"begun\ndone\n".into())
    );
}

#[test]
fn a_server_that_is_killed_loses_no_execution_in_a_container() {
    if !has_runc("containers of a server that is killed") {
        return;
    }
    let data = data();
    let server = Server::start_with(data.path(), &[RUNC]);
    // Each runs long enough to be observed.
    let ids: Vec<_> = (0..8).map(|n| accept(&server, &format!("sleep 1.{n}; echo {n}"))).collect();
    server.wait_until_running(&ids[0]);
    let (residue, number) = (Residue::of(&server), server.id());
    server.kill();
    let server = Server::start_with(data.path(), &[RUNC]);
    // The start removes the files of the previous server's containers.
    residue.assert_gone();
    let left = wait_until_empty(WAIT_TIMEOUT, || container_files(number));
    assert!(left.is_empty(), "{left:?}");
    for (n, id) in ids.iter().enumerate() {
        let report = server.final_report(id);
        assert_eq!(report["status"], "completed", "{report}");
        assert_eq!(
            (&report["isolation"], &report["stdout"]),
            (&"runc".into(), &format!("{n}\n").into())
        );
    }
}

#[test]
fn a_queued_execution_fails_if_its_backend_is_no_longer_permitted() {
    if !has_runc("an isolation that is taken back") {
        return;
    }
    let data = data();
    let server = Server::start_with(data.path(), &[RUNC, QUICK_STOP]);
    let id = accept(&server, "sleep 9");
    server.wait_until_running(&id);
    server.stop();
    let report = Server::start(data.path()).final_report(&id);
    assert_eq!(report["status"], "error", "{report}");
    let error = report["error"].as_str().expect("it says why");
    assert!(error.contains("'runc' is not permitted here"), "{error}");
}

/// Starts a server that must fail, and returns its error.
fn start_error(data: &Path, settings: &[(&str, &str)]) -> String {
    let mut command = command(data, &["--listen", "127.0.0.1:0"]);
    let ended = command.envs(settings.iter().copied()).output().expect("sandboxd can be started");
    assert!(!ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stderr).expect("it prints text")
}

#[test]
fn invalid_isolation_settings_are_refused_at_the_start() {
    let data = data();
    for (settings, parts) in [
        (&[("SANDBOXD_ISOLATIONS", "")][..], ["isolations", "at least one must be named"]),
        (&[("SANDBOXD_ISOLATIONS", "native,magic")], ["'magic'", "native"]),
        (
            &[("SANDBOXD_ISOLATIONS", "docker"), ("SANDBOXD_DOCKER_HOST", "unix:///nonexistent")],
            ["with the isolation docker", "/nonexistent"],
        ),
        (&[("SANDBOXD_OCI_RUNTIME", "youki")], ["oci_runtime", "runc, crun or the path"]),
        (
            &[("SANDBOXD_ISOLATIONS", "runc"), ("SANDBOXD_OCI_RUNTIME", "/nonexistent")],
            ["with the isolation runc", "/nonexistent"],
        ),
        (&[("SANDBOXD_ISOLATION_ORDER", "runc")], ["isolation_order names none", "native"]),
    ] {
        let stderr = start_error(data.path(), settings);
        assert!(parts.iter().all(|part| stderr.contains(part)), "{stderr}");
    }
}

#[test]
fn an_unavailable_isolation_backend_is_refused_at_the_start() {
    if !rustix::process::geteuid().is_root() {
        return skip("an isolation that this host does not have", "it takes root to become nobody");
    }
    let data = data();
    std::os::unix::fs::chown(data.path(), Some(65_534), Some(65_534)).expect("root may");
    let program = data.path().join("sandboxd");
    std::fs::copy(env!("CARGO_BIN_EXE_sandboxd"), &program).expect("it can be copied");
    let ended = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(&program)
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data.path())
        .current_dir("/")
        .env("SANDBOXD_ISOLATIONS", "native,runc")
        .env_remove("LLVM_PROFILE_FILE")
        .output()
        .expect("setpriv can be started");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("with the isolation runc") && stderr.contains("needs root"),
        "{stderr}"
    );
}
