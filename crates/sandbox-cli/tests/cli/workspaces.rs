//! Workspaces from the command line.

use std::path::Path;

use assert_cmd::Command;

use crate::support::{BINARY, CommandOutput, TIMEOUT};

/// Calls the command with its workspaces in this directory.
fn call(place: &Path, args: &[&str]) -> CommandOutput {
    call_with_stdin(place, args, Vec::new())
}

fn call_with_stdin(place: &Path, args: &[&str], stdin: Vec<u8>) -> CommandOutput {
    raw(place, args, stdin).into()
}

fn raw(place: &Path, args: &[&str], stdin: Vec<u8>) -> std::process::Output {
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_WORKSPACES", place.join("workspaces"));
    command.env("SANDBOX_RUN_WORKSPACE_SIZE", "2M");
    command.args(args).write_stdin(stdin).timeout(TIMEOUT).output().unwrap()
}

fn bash<'a>(workspace: &'a str, script: &'a str) -> [&'a str; 6] {
    ["--lang", "bash", "--workspace", workspace, "--code", script]
}

#[test]
fn two_commands_share_a_workspace_until_it_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let list = call(place, &["workspace", "list"]);
    assert!(list.stdout.contains("no workspaces: "), "{list:?}");
    assert_eq!(call(place, &bash("job", "echo built > result")).code, Some(0));
    assert_eq!(call(place, &bash("job:ro", "cat result; rm result")).stdout, "built\n");
    assert_eq!(call(place, &bash("job", "cat result")).stdout, "built\n");
    let list = call(place, &["workspace", "list"]);
    assert!(list.stdout.contains("WORKSPACE") && list.stdout.contains("job"), "{list:?}");
    let json = call(place, &["workspace", "list", "--json"]).json();
    assert_eq!((&json[0]["name"], &json[0]["bytes"]), (&"job".into(), &6.into()));
    let shown = call(place, &["workspace", "show", "job"]).json();
    assert_eq!((&shown["files"], &shown["in_use"]), (&1.into(), &false.into()));
    assert_eq!(call(place, &["workspace", "rm", "job"]).code, Some(0));
    for args in [&["workspace", "rm", "job"][..], &["workspace", "show", "job"]] {
        call(place, args).is_refused_with(&["there is no workspace 'job'"]);
    }
    call(place, &bash("job:ro", "true")).is_refused_with(&["there is no workspace 'job'"]);
}

#[test]
fn an_export_is_an_archive_and_an_import_takes_it() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    call(place, &bash("a", "mkdir d; echo text > d/file; ln -s d/file link; chmod 755 d/file"));
    let archive = raw(place, &["workspace", "export", "a"], Vec::new()).stdout;
    let tar = Command::new("tar").args(["tvf", "-"]).write_stdin(archive.clone()).output().unwrap();
    let listing = String::from_utf8_lossy(&tar.stdout).into_owned();
    for part in ["-rwxr-xr-x", " d/\n", " d/file\n", "link -> d/file"] {
        assert!(listing.contains(part), "no {part:?} in {listing}");
    }
    let answer = call_with_stdin(place, &["workspace", "import", "b"], archive);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(call(place, &bash("b", "cat link")).stdout, "text\n");
    let file = place.join("out.tar");
    let file = file.to_str().unwrap();
    assert_eq!(call(place, &["workspace", "export", "b", file]).code, Some(0));
    assert_eq!(call(place, &["workspace", "import", "c", file]).code, Some(0));
    call(place, &["workspace", "export", "nobody", file])
        .is_refused_with(&["there is no workspace 'nobody'"]);
    let garbage = vec![b'x'; 2048];
    call_with_stdin(place, &["workspace", "import", "d"], garbage)
        .is_refused_with(&["the archive cannot be taken"]);
    call(place, &["workspace", "import", "d", "/nonexistent"]).is_refused_with(&["/nonexistent"]);
}

#[test]
fn files_that_are_not_saved_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let stopped = call(place.path(), &[&bash("w", "sleep 9")[..], &["-t", "300ms"]].concat());
    assert_eq!(stopped.code, Some(124));
    let told = "workspace w not saved: the program did not end by itself";
    assert!(stopped.stderr.contains(told), "{stopped:?}");
    let too_much = call(place.path(), &bash("w", "truncate -s 8M x; mkfifo pipe"));
    assert_eq!(too_much.code, Some(153), "{too_much:?}");
    assert!(too_much.stderr.contains("more than 2M and 80 files"), "{too_much:?}");
    let left_out = call(place.path(), &bash("w", "mkfifo pipe"));
    assert!(left_out.stderr.contains("pipe (it is a pipe)"), "{left_out:?}");
}

#[test]
fn an_invalid_name_is_refused() {
    let place = tempfile::tempdir().unwrap();
    for name in ["../x", "a b", "a:rx", ""] {
        call(place.path(), &bash(name, "true")).is_refused_with(&["--workspace"]);
    }
}
