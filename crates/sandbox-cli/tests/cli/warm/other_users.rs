use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use super::{BINARY, Session};
use crate::support::{CommandOutput, call, skip, wait_until};

const HELLO: &[&str] = &["-q", "-l", "bash", "-c", "echo hello"];
const NOBODY: u32 = 65534;

/// Only root can act as two users.
pub(super) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can act as another user");
    }
    is_root
}

fn is_internal_error(answer: &CommandOutput, part: &str) {
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(125), ""), "{answer:?}");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert!(answer.stderr.contains(part), "no {part:?} in {answer:?}");
    assert!(answer.stderr.contains("run without --warm instead"), "{answer:?}");
}

#[test]
fn the_directory_is_for_its_user_alone() {
    let session = Session::new();
    session.warm(HELLO);
    let made = fs::metadata(session.place()).unwrap();
    assert_eq!(made.mode() & 0o777, 0o700);
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));

    fs::set_permissions(session.place(), Permissions::from_mode(0o755)).unwrap();
    is_internal_error(&session.warm(HELLO), "0700");
    fs::set_permissions(session.place(), Permissions::from_mode(0o700)).unwrap();
    if is_root() {
        chown(session.place(), Some(NOBODY), None).unwrap();
        is_internal_error(&session.warm(HELLO), "belongs to user 65534");
        chown(session.place(), Some(0), None).unwrap();
    }
}

#[test]
fn another_process_in_place_of_the_helper_receives_nothing() {
    if !is_root() {
        return;
    }
    let session = Session::new();
    session.warm(HELLO);
    let socket = session.socket();
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));
    let script = "import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\n\
                  os.setuid(65534)\ns.listen()\nprint('listening', flush=True)\n\
                  print(s.accept()[0].recv(1), flush=True)";
    let mut stranger = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = stranger.stdout.take().unwrap();
    let mut line = [0; 10];
    stdout.read_exact(&mut line).unwrap();
    is_internal_error(&session.warm(HELLO), "user 65534 answers in its place");
    let mut heard = String::new();
    stdout.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "b''\n", "the stranger was told something");
    stranger.wait().unwrap();
    fs::remove_file(socket).unwrap();
}

#[test]
fn what_lies_in_place_of_the_socket_gives_way() {
    let session = Session::new();
    session.warm(HELLO);
    let socket = session.socket();
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));
    fs::write(&socket, "no socket").unwrap();
    let answer = session.warm(HELLO);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "hello\n"), "{answer:?}");
}

#[test]
fn a_helper_that_cannot_be_started_gives_an_error_with_the_alternative() {
    let session = Session::new();
    // No directory can be made where a file is.
    fs::write(session.place(), "").unwrap();
    is_internal_error(&session.warm(HELLO), "not a directory");
    fs::remove_file(session.place()).unwrap();

    // No process can be started whose last words have no place.
    session.warm(HELLO);
    let socket = session.socket();
    let log = socket.with_extension("log");
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    is_internal_error(&session.warm(HELLO), "cannot start the helper of --warm");
    assert!(!socket.exists(), "a socket that nobody answers on was left");
}

#[test]
fn a_host_without_sandboxes_gives_the_same_error_as_without_a_helper() {
    let session = Session::new();
    let told = ["", "--warm"].map(|more| {
        let script = format!(
            "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" {more} --isolation native -l python -c 1"
        );
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &script, BINARY]);
        command.env("XDG_RUNTIME_DIR", session.runtime.path()).stdin(Stdio::null());
        let answer = CommandOutput::from(command.output().unwrap());
        (answer.code, answer.stdout, answer.stderr)
    });
    assert_eq!(told[0].0, Some(125));
    assert_eq!(told[0], told[1]);
    let socket = session.socket();
    // It was of another namespace than this process is, and none of its helpers.
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));
    wait_until("that helper to go", || UnixStream::connect(&socket).is_err());
}

#[test]
fn what_does_not_go_together_is_refused() {
    let line = ["--warm", "--server", "http://127.0.0.1:1", "-l", "bash", "-c", "1"];
    call(&line).is_refused_with(&["--warm", "--server"]);
    call(&["warm", "serve"]).is_refused_with(&["warm serve", "--warm"]);
    let help = call(&["warm", "--help"]);
    assert!(help.stdout.contains("SANDBOX_RUN_WARM_IDLE") && !help.stdout.contains("serve"));
}
