use std::os::unix::fs::PermissionsExt as _;

use crate::server_process::{command, output};

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

#[test]
fn listening_on_other_addresses_requires_keys() {
    let data = data();
    let refused = output(data.path(), &["--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("sandboxd keys create --name"), "{stderr}");
}

#[test]
fn an_error_in_the_file_is_reported_with_its_line() {
    let data = data();
    std::fs::write(data.path().join("sandboxd.toml"), "burst = 5\nport = 80\n")
        .expect("the file can be written");
    let refused = output(data.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        stderr.starts_with("sandboxd: sandboxd.toml, line 2: unknown setting 'port'"),
        "{stderr}"
    );
}

#[test]
fn a_file_that_other_users_can_write_must_be_named() {
    let data = data();
    let file = data.path().join("sandboxd.toml");
    std::fs::write(&file, "burst = 5\n").expect("the file can be written");
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&file, open).expect("it is our file");
    let refused = output(data.path(), &["config", "check"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        stderr.contains("refusing to read sandboxd.toml: other users can write to it"),
        "{stderr}"
    );
    let named = output(data.path(), &["config", "check", "--config", "sandboxd.toml"]);
    assert!(named.status.success(), "{named:?}");
}

#[test]
fn every_value_is_printed_with_its_source() {
    let data = data();
    std::fs::write(data.path().join("sandboxd.toml"), "burst = 5\n")
        .expect("the file can be written");
    let printed = command(data.path(), &["config", "check", "--listen", "127.0.0.1:9"])
        .env("SANDBOXD_WAIT_LIMIT", "7s")
        .output()
        .expect("sandboxd can be started");
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).expect("it prints text");
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        &["listen", "127.0.0.1:9", "#", "--listen"][..],
        &["burst", "5", "#", "sandboxd.toml,", "line", "1"],
        &["wait_limit", "7s", "#", "SANDBOXD_WAIT_LIMIT"],
        &["queue_bound", "1000", "#", "default"],
    ] {
        assert!(rows.iter().any(|found| found == row), "{row:?} is not in\n{text}");
    }
}

#[test]
fn unsupported_roles_queues_and_databases_are_refused() {
    let data = data();
    for arguments in [
        ["--role", "api"],
        ["--role", "worker"],
        ["--queue", "redis://127.0.0.1"],
        ["--database", "postgres://127.0.0.1/x"],
    ] {
        let refused = output(data.path(), &arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {refused:?}");
    }
}
