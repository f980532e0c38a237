//! What a report says where a host cannot give all inodes, or all limits on watching, to each sandbox alone.

use std::path::Path;

use assert_cmd::Command;

use crate::support::{BINARY, CommandOutput, TIMEOUT, call, skip};

const HELLO: &[&str] = &["-l", "python", "-c", "print(6*7)", "--json"];
/// A file below `/usr` that most hosts have.
const FILE: &str = "/usr/bin/env";

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can mount, and give up a capability");
    }
    is_root
}

/// Calls the command where this file is mounted by itself, which nobody else sees.
fn call_with_a_mounted_file(args: &[&str]) -> CommandOutput {
    let script = format!("mount --bind {FILE} {FILE} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh", BINARY]);
    command.args(args).timeout(TIMEOUT).output().unwrap().into()
}

/// Calls the command as root without this capability.
fn call_without_capability(name: &str, args: &[&str]) -> CommandOutput {
    let mut command = Command::new("setpriv");
    command.arg(format!("--bounding-set=-{name}")).arg(format!("--inh-caps=-{name}"));
    command.arg(BINARY).args(args).timeout(TIMEOUT).output().unwrap().into()
}

fn names(report: &serde_json::Value, list: &str) -> Vec<String> {
    let names = report[list].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Checks that a program ran, and that the report lists one protection as missing where it is not, and another as in force.
fn lacks_only(output: &CommandOutput, usual: &CommandOutput, missing: &str, enforced: &str) {
    let (report, usual) = (output.json(), usual.json());
    assert_eq!((&report["status"], &report["stdout"]), (&"completed".into(), &"42\n".into()));
    assert!(!names(&usual, "missing").iter().any(|name| name == missing), "{usual}");
    let mut expected = names(&usual, "missing");
    expected.push(missing.to_owned());
    expected.sort();
    let mut listed = names(&report, "missing");
    listed.sort();
    assert_eq!(listed, expected, "{report}");
    assert!(names(&report, "enforced").iter().any(|name| name == enforced), "{report}");
}

#[test]
fn a_single_file_that_is_mounted_is_told_and_refuses_nothing() {
    if !is_root() {
        return;
    }
    for isolation in ["native", "runc"] {
        let args = [HELLO, &["--isolation", isolation]].concat();
        let output = call_with_a_mounted_file(&args);
        lacks_only(&output, &call(&args), "private-file-inodes", "private-inodes");
    }
    let doctor = call_with_a_mounted_file(&["doctor"]).stdout;
    let reason = format!("✗ private-file-inodes: {FILE} is a mount of a single file");
    assert!(doctor.contains(&reason), "{doctor}");
}

#[test]
fn without_device_nodes_of_its_own_a_sandbox_says_so() {
    if !is_root() {
        return;
    }
    for isolation in ["native", "runc"] {
        let args = [HELLO, &["--isolation", isolation]].concat();
        let output = call_without_capability("mknod", &args);
        lacks_only(&output, &call(&args), "private-file-inodes", "private-inodes");
    }
}

#[test]
fn a_limit_on_watching_that_is_shared_is_told_and_refuses_nothing() {
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return;
    }
    let output = call_without_capability("setpcap", HELLO);
    lacks_only(&output, &call(HELLO), "inotify-limits", "private-file-inodes");
    let doctor = call_without_capability("setpcap", &["doctor"]).stdout;
    assert!(doctor.contains("✗ inotify-limits: without CAP_SETPCAP"), "{doctor}");
}
