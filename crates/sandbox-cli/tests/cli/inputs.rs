//! Special files on the command line never block and are never read without an end.

use std::path::Path;
use std::process::Command;

use crate::support::{BINARY, CommandOutput, call};

/// Every way to name a file to be read, with this one in it.
fn ways(file: &str) -> Vec<Vec<String>> {
    let hello = ["-l", "python", "-c", "print(1)"];
    let with = |before: &[&str], after: &[&str]| {
        before.iter().chain(after).map(|word| (*word).to_owned()).collect::<Vec<_>>()
    };
    vec![
        with(&["-l", "python"], &[file]),
        with(&["-l", "python"], &["--file", file]),
        with(&["-l", "python", "/etc/hostname"], &[file]),
        with(&hello, &["--stdin", file]),
        with(&hello, &["--input", file]),
        with(&hello, &["--input", &format!("{file}:data")]),
        with(&hello, &["--template", file]),
        with(&hello, &["--template", "/etc/hostname", "--set-file", &format!("name={file}")]),
        with(&["workspace", "import", "no-such-workspace"], &[file]),
        with(&["images", "import"], &[file]),
    ]
}

#[test]
fn a_named_pipe_is_refused_without_blocking() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for way in ways(pipe.to_str().unwrap()) {
        let words: Vec<_> = way.iter().map(String::as_str).collect();
        call(&words).is_refused_with(&["it is a named pipe", "only regular files"]);
    }
}

#[test]
fn a_device_is_refused_and_not_read() {
    for way in ways("/dev/zero") {
        let words: Vec<_> = way.iter().map(String::as_str).collect();
        call(&words).is_refused_with(&["it is a device", "only regular files"]);
    }
    in_bash("exec \"$0\" -l python < /dev/zero").is_refused_with(&["standard input", "device"]);
    in_bash("exec \"$0\" -l python /dev/stdin < /dev/zero").is_refused_with(&["it is a device"]);
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("large");
    // More than there is memory, and no block of it on the disk.
    std::fs::File::create(&large).unwrap().set_len(1 << 42).unwrap();
    let large = large.to_str().unwrap();
    for words in [&["-l", "python", large][..], &["-l", "python", "-c", "1", "--input", large]] {
        call(words).is_refused_with(&["exceeds the maximum input of 1G"]);
    }
}

fn in_bash(script: &str) -> CommandOutput {
    assert!(Path::new("/bin/bash").exists());
    Command::new("bash").args(["-c", script, BINARY]).output().unwrap().into()
}

#[test]
fn pipes_of_a_shell_and_dev_null_are_read() {
    let code = "--file <(echo 'print(open(\"data\").read() + input())')";
    let answer = in_bash(&format!(
        "exec \"$0\" -q -l python {code} --input <(echo data):data --stdin <(sleep 0.1; echo in)"
    ));
    assert_eq!((answer.code, &*answer.stdout), (Some(0), "data\nin\n"), "{answer:?}");
    let code = "import sys; print(len(sys.stdin.read()))";
    let answer = call(&["-q", "-l", "python", "-c", code, "--stdin", "/dev/null"]);
    assert_eq!((answer.code, &*answer.stdout), (Some(0), "0\n"), "{answer:?}");
}
