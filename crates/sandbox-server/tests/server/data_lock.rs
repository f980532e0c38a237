//! Only one server can use a data directory.

use std::path::Path;
use std::process::Output;

use crate::server_process::{Server, WAIT_TIMEOUT, command, create_key, output};

/// Starts a server that must exit at once, and returns its error.
fn start_refused(data: &Path, arguments: &[&str]) -> String {
    let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
    let mut process = command(data, &arguments)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("sandboxd can be started");
    let ended = sandbox_tests::wait::wait_for(WAIT_TIMEOUT, || {
        process.try_wait().expect("the server is a child process")
    });
    if ended.is_none() {
        process.kill().expect("the server is a child process");
    }
    let Output { status, stderr, .. } =
        process.wait_with_output().expect("the server is a child process");
    let stderr = String::from_utf8(stderr).expect("it says text");
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn a_second_server_on_a_data_directory_is_refused() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let id = server.accept("print(1)");
    let stderr = start_refused(data.path(), &[]);
    let directory = data.path().to_str().expect("temporary paths are text");
    assert!(stderr.contains(&format!("the data directory {directory} is in use")), "{stderr}");
    assert!(stderr.contains(&format!("(pid {})", server.id())), "{stderr}");
    assert_eq!(server.final_report(&id)["status"], "completed");
}

#[test]
fn a_database_of_another_server_is_refused_from_any_data_directory() {
    let [data, other] =
        [0, 1].map(|_| tempfile::tempdir().expect("a temporary directory can be created"));
    let _server = Server::start(data.path());
    // Through a symbolic link.
    let link = other.path().join("link.db");
    std::os::unix::fs::symlink(data.path().join("sandboxd.db"), &link).expect("it can be made");
    let database = data.path().join("elsewhere/shared.db");
    let (link, database) = (url(&link), url(&database));
    let stderr = start_refused(data.path(), &["--database", &link]);
    assert!(stderr.contains("is in use"), "{stderr}");
    let stderr = start_refused(other.path(), &["--database", &link]);
    assert!(stderr.contains("sandboxd.db is in use"), "{stderr}");

    let third = tempfile::tempdir().expect("a temporary directory can be created");
    let sharing = Server::start_with(third.path(), &[("SANDBOXD_DATABASE", &database)]);
    let stderr = start_refused(other.path(), &["--database", &database]);
    assert!(stderr.contains("shared.db is in use"), "{stderr}");
    assert!(stderr.contains(&format!("(pid {})", sharing.id())), "{stderr}");
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.to_str().expect("temporary paths are text"))
}

#[test]
fn the_lock_is_released_when_the_server_ends_or_is_killed() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    for _ in 0..3 {
        let server = Server::start(data.path());
        server.accept("import time; time.sleep(30)");
        server.kill();
    }
    let server = Server::start_with(data.path(), &[("SANDBOXD_SHUTDOWN_DEADLINE", "1s")]);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    Server::start(data.path());
}

#[test]
fn commands_work_while_a_server_runs() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let key = create_key(data.path(), "beside");
    for arguments in [&["keys", "list"][..], &["audit"], &["config", "check"]] {
        let done = output(data.path(), arguments);
        assert!(done.status.success(), "{done:?}");
    }
    let id = key.split('_').nth(1).expect("a key has an id");
    let revoked = output(data.path(), &["keys", "revoke", id]);
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(server.get("/api/v1/health").status, 200);
}
