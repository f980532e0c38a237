//! The Unix socket and the end of an idle server.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Response, try_send_to_socket};
use crate::server_process::{Server, WAIT_TIMEOUT, command, create_key, output};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

fn start(data: &Path, socket: &Path) -> Server {
    Server::start_with(data, &[("SANDBOXD_SOCKET", text(socket))])
}

fn send(socket: &Path, method: &str, path: &str, body: &str) -> Response {
    let response = try_send_to_socket(socket, method, path, body);
    response.unwrap_or_else(|| panic!("no response to {method} {path}"))
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

#[test]
fn the_user_of_the_server_needs_no_key_and_has_every_permission() {
    let data = directory();
    let socket = data.path().join("socket");
    create_key(data.path(), "somebody");
    let server = start(data.path(), &socket);
    assert_eq!(server.get("/api/v1/executions").status, 401);
    let mode = fs::metadata(&socket).expect("the server listens").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let body =
        json!({ "language": "python", "code": "print(6 * 7)", "allow_missing": ["landlock"] });
    let report = send(&socket, "POST", "/api/v1/execute", &body.to_string());
    assert_eq!(report.status, 200, "{report:?}");
    assert_eq!(report.json()["stdout"], "42\n");
    let listed = send(&socket, "GET", "/api/v1/executions", "");
    assert_eq!(listed.json()["executions"].as_array().map(Vec::len), Some(1), "{listed:?}");

    let (status, log) = server.stop();
    assert!(status.success());
    assert!(log.contains(&format!("listening on unix:{}", socket.display())), "{log}");
    assert!(!is_socket(&socket), "the socket outlived its server");
}

/// Without root, a program in a sandbox has the user id of the server; it differs by its namespaces.
#[test]
fn a_process_of_the_same_user_in_another_namespace_is_refused() {
    let data = directory();
    let socket = data.path().join("socket");
    let server = start(data.path(), &socket);
    let ask = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
               print('connected')\ntry:\n  s.send(b'GET / HTTP/1.0\\r\\n\\r\\n')\n  print(s.recv(15))\n\
               except OSError: print(b'')";
    let asked = |around: &[&str]| -> Output {
        let line = [around, &["/usr/bin/python3", "-c", ask, text(&socket)]].concat();
        let asked = Command::new(line[0]).args(&line[1..]).output();
        asked.expect("the command can be started")
    };
    let outside = asked(&["env"]);
    assert_eq!(outside.stdout, b"connected\nb'HTTP/1.0 200 OK'\n", "{outside:?}");
    for namespaces in [&["--user"][..], &["--user", "--pid", "--fork"]] {
        let inside = asked(&[&["unshare", "--map-current-user"], namespaces, &["--"]].concat());
        if String::from_utf8_lossy(&inside.stderr).contains("unshare failed") {
            skip("the peer of the socket", "this user cannot create namespaces");
            return;
        }
        assert_eq!(inside.stdout, b"connected\nb''\n", "{namespaces:?}: {inside:?}");
    }
    let (_, log) = server.stop();
    assert!(log.contains("the process is in another namespace"), "{log}");
}

#[test]
fn a_socket_that_is_not_in_use_is_replaced_and_nothing_else() {
    let (first, second) = (directory(), directory());
    let socket = first.path().join("socket");
    start(first.path(), &socket).kill();
    assert!(is_socket(&socket), "a killed server removes nothing");
    let server = start(first.path(), &socket);
    assert_eq!(send(&socket, "GET", "/api/v1/health", "").status, 200);

    let arguments = ["--listen", "off", "--socket", text(&socket)];
    let refused = output(second.path(), &arguments);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("another process listens on"), "{message}");
    assert_eq!(send(&socket, "GET", "/api/v1/health", "").status, 200);
    drop(server);

    fs::remove_file(&socket).expect("the socket is left");
    fs::write(&socket, "no socket").expect("the directory is writable");
    let refused = output(second.path(), &arguments);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("is not a socket"), "{message}");
    assert_eq!(fs::read_to_string(&socket).expect("it is still there"), "no socket");
}

/// Starts a server that has only a socket and stops when it is idle.
fn start_until_idle(data: &Path, socket: &Path) -> Child {
    let arguments = ["--listen", "off", "--socket", text(socket), "--idle-exit", "2s"];
    let server = command(data, &arguments).stderr(Stdio::null()).spawn();
    let server = server.expect("sandboxd can be started");
    let listens = wait_for(WAIT_TIMEOUT, || is_socket(socket).then_some(()));
    assert!(listens.is_some(), "it does not listen");
    server
}

/// Waits until the server has stopped by itself.
fn wait_until_stopped(server: &mut Child) {
    // The server waits for its executions, for the idle time twice, and for its sandboxes.
    let ended = wait_for(Duration::from_mins(2), || server.try_wait().expect("it is a child"));
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
}

#[test]
fn an_idle_server_stops_after_its_executions() {
    let data = directory();
    let socket = data.path().join("socket");
    let code = "import time; time.sleep(3)";
    let body = json!({ "language": "python", "code": code, "timeout_ms": 60_000 }).to_string();
    // On a busy machine it may stop before the request arrives. A client starts the next one then.
    let accepted = loop {
        let mut server = start_until_idle(data.path(), &socket);
        let answer = try_send_to_socket(&socket, "POST", "/api/v1/execute?wait=false", &body);
        wait_until_stopped(&mut server);
        if let Some(accepted) = answer.filter(|answer| answer.status == 202) {
            break accepted;
        }
    };
    assert!(!is_socket(&socket), "the socket outlived its server");

    let audit = output(data.path(), &["audit", "--json"]);
    let entry: Value = serde_json::from_slice(&audit.stdout).expect("there is one entry");
    assert_eq!(entry["subject"], accepted.json()["id"]);
    assert_eq!(entry["detail"]["status"], "completed", "it was not waited for");
}

#[test]
fn an_address_can_be_left_out_only_with_a_socket() {
    let data = directory();
    let refused = output(data.path(), &["--listen", "off", "config", "check"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("listen (--listen): 'off' requires socket"), "{message}");
}
