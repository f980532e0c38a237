//! A server whose executions may run in containers of runc, started, stopped and killed.

use std::path::{Path, PathBuf};

use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_until_empty;
use serde_json::json;

use crate::server::{Belongings, SOON, Server, command};

const RUNC: (&str, &str) = ("SANDBOXD_ISOLATIONS", "native,runc");
const QUICK_STOP: (&str, &str) = ("SANDBOXD_SHUTDOWN_DEADLINE", "100ms");

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for temporary files")
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
    let answer = server.send("POST", "/api/v1/execute?wait=false", &[], &body);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().expect("an id is text").to_owned()
}

/// What containers of this server left on the host.
fn left_by(server: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/run/sandbox-run-oci").into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains(&format!(".{server}."));
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

#[test]
fn containers_end_with_a_server_that_stops_and_are_run_again_by_the_next() {
    if !has_runc("containers of a server that stops") {
        return;
    }
    let data = data();
    let server = Server::start_with(data.path(), &[RUNC, QUICK_STOP]);
    let id = accept(&server, "echo begun; sleep 3; echo done");
    server.wait_until_running(&id);
    let (belongings, number) = (Belongings::of(&server), server.id());
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    belongings.assert_gone();
    assert_eq!(left_by(number), [] as [PathBuf; 0]);

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
    // Each lasts long enough to be seen.
    let ids: Vec<_> = (0..8).map(|n| accept(&server, &format!("sleep 1.{n}; echo {n}"))).collect();
    server.wait_until_running(&ids[0]);
    let (belongings, number) = (Belongings::of(&server), server.id());
    server.kill();
    let server = Server::start_with(data.path(), &[RUNC]);
    // The start has cleared what the runtime had put there.
    belongings.assert_gone();
    let left = wait_until_empty(SOON, || left_by(number));
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
fn what_waited_for_walls_that_are_not_permitted_any_more_ends_with_that_reason() {
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

/// The line that a server with these settings refuses to start with.
fn refusal(data: &Path, settings: &[(&str, &str)]) -> String {
    let mut command = command(data, &["--listen", "127.0.0.1:0"]);
    let ended = command.envs(settings.iter().copied()).output().expect("sandboxd can be started");
    assert!(!ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stderr).expect("it prints text")
}

#[test]
fn isolations_that_make_no_sense_are_refused_at_the_start() {
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
        let said = refusal(data.path(), settings);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn an_isolation_that_this_host_does_not_have_is_refused_at_the_start() {
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
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("with the isolation runc") && said.contains("needs root"), "{said}");
}
