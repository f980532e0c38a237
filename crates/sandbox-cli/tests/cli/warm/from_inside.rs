//! Attacks on the helper from inside a sandbox. The sandboxes of an unprivileged user have that user's id, so the
//! credentials of the socket do not distinguish them from the user.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{copy_of_the_command, other_users::is_root, process};
use crate::support::{CommandOutput, family, wait_until_gone};

const NOBODY: u32 = 65534;
const HELLO: &[&str] = &["--warm", "-q", "-l", "python", "-c", "print(6 * 7)"];
/// Asks for the status, in the words of a client.
const STATUS: &str = "b'\\x08\\0\\0\\0m\"Status\"'";

/// An ordinary user, whose helpers end with the test.
struct Ordinary {
    root: TempDir,
}

impl Ordinary {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let user = Self { root };
        copy_of_the_command(&user.binary());
        for path in [user.root.path(), &user.binary()] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(user.runtime()).unwrap();
        chown(user.runtime(), Some(NOBODY), Some(NOBODY)).unwrap();
        user
    }

    fn binary(&self) -> PathBuf {
        self.root.path().join("sandbox-run")
    }

    fn runtime(&self) -> PathBuf {
        self.root.path().join("runtime")
    }

    fn socket(&self) -> PathBuf {
        let files = fs::read_dir(self.runtime().join("sandbox-run")).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        files.find(|path| path.extension().is_some_and(|ending| ending == "socket")).unwrap()
    }

    /// What shows a program all of the user's sockets, and lets it make some.
    fn volume(&self) -> String {
        format!("{}:/seen:rw", self.runtime().display())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(self.binary()).args(args).current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.runtime()).env("HOME", self.runtime());
        command.stdin(Stdio::null());
        command
    }

    fn call(&self, args: &[&str]) -> CommandOutput {
        self.command(args).output().unwrap().into()
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        let status = self.call(&["warm", "status", "--json"]);
        let stopped = self.call(&["warm", "stop"]);
        if std::thread::panicking() {
            return;
        }
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
        for helper in status.json().as_array().unwrap() {
            wait_until_gone(&family(process(helper)));
        }
    }
}

/// Root can go anywhere, and is still somebody else.
#[test]
fn a_helper_answers_its_own_user_only() {
    if !is_root() {
        return;
    }
    let user = Ordinary::new();
    let answer = user.call(HELLO);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "42\n"), "{answer:?}");
    let mut stream = UnixStream::connect(user.socket()).unwrap();
    // It may have hung up already.
    let _ = stream.write_all(b"\x08\0\0\0m\"Status\"");
    let mut answered = Vec::new();
    let _ = stream.read_to_end(&mut answered);
    assert_eq!(answered, b"", "{}", String::from_utf8_lossy(&answered));
}

#[test]
fn a_program_that_is_shown_the_socket_cannot_use_the_helper() {
    if !is_root() {
        return;
    }
    let user = Ordinary::new();
    let code = format!(
        "import glob, socket\ns = socket.socket(socket.AF_UNIX)\n\
         s.connect(glob.glob('/seen/sandbox-run/*.socket')[0])\nprint('connected')\n\
         try:\n  s.send({STATUS})\n  print(s.recv(1000))\nexcept OSError as error: print('no')"
    );
    user.call(HELLO);
    for more in [&["-q"][..], &["-q", "--warm"]] {
        let inside =
            user.call(&[more, &["-v", &user.volume(), "-l", "python", "-c", &code]].concat());
        assert!(
            ["connected\nb''\n", "connected\nno\n"].contains(&inside.stdout.as_str()),
            "{inside:?}"
        );
    }
    // The same words from outside, by the same user, are answered.
    let outside = code.replace("/seen", user.runtime().to_str().unwrap());
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.args(["/usr/bin/python3", "-c", &outside]).current_dir("/");
    let outside = CommandOutput::from(command.output().unwrap());
    assert!(outside.stdout.contains("executions"), "{outside:?}");
}

#[test]
fn a_program_that_is_shown_the_directory_cannot_be_the_helper() {
    if !is_root() {
        return;
    }
    let user = Ordinary::new();
    user.call(HELLO);
    let name = user.socket().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(user.call(&["warm", "stop"]).code, Some(0));
    let code = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('/seen/sandbox-run/{name}')\n\
         s.listen()\nprint('listening', flush=True)\nprint(s.accept()[0].recv(1))"
    );
    let line = ["-q", "-t", "60s", "-v", &user.volume(), "-l", "python", "-c", &code];
    let mut inside = user.command(&line).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(inside.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "listening\n");
    let answer = user.call(HELLO);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(125), ""), "{answer:?}");
    assert!(answer.stderr.contains("answers in its place"), "{answer:?}");
    let mut heard = String::new();
    stdout.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "b''\n", "it was told something");
    inside.wait().unwrap();
    fs::remove_file(user.runtime().join("sandbox-run").join(name)).unwrap();
}
