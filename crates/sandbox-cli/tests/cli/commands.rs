//! Help, version, completions and lists.

use std::process::{Command, Stdio};

use crate::support::{BINARY, call};

#[test]
fn help_is_short_or_long_and_has_examples() {
    let (short, long) = (call(&["-h"]), call(&["--help"]));
    for help in [&short, &long] {
        assert_eq!(help.code, Some(0));
        assert!(help.stdout.contains("Examples:"), "{help:?}");
        assert!(help.stdout.contains("[default: 256M]"), "{help:?}");
    }
    assert!(long.stdout.len() > short.stdout.len());
    assert!(call(&["run", "--help"]).stdout.contains("--timeout"));
}

#[test]
fn help_into_a_pipe_has_no_colours() {
    assert!(!call(&["--help"]).stdout.contains('\u{1b}'));
}

#[test]
fn the_version_is_printed() {
    let answer = call(&["--version"]);
    let wanted = format!("sandbox-run {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((answer.code, answer.stdout), (Some(0), wanted));
}

#[test]
fn completions_are_made_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let answer = call(&["completions", shell]);
        assert_eq!(answer.code, Some(0));
        assert!(answer.stdout.contains("output-limit"), "{shell}");
    }
    call(&["completions"]).is_refused_with(&["<SHELL>"]);
    call(&["completions", "tcsh"]).is_refused_with(&["tcsh", "bash"]);
}

#[test]
fn the_system_call_filter_is_printed_for_docker_and_for_bundles() {
    let docker = call(&["seccomp"]).json();
    assert_eq!(docker["defaultAction"], "SCMP_ACT_ERRNO");
    assert_eq!(docker["archMap"].as_array().unwrap().len(), 2);
    let bundle = call(&["seccomp", "--oci"]).json();
    assert_eq!(bundle["architectures"].as_array().unwrap().len(), 1);
    assert!(bundle["syscalls"].as_array().unwrap().len() > 10);
}

#[test]
fn a_closed_pipe_prints_no_message() {
    let mut child = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn runtimes_are_listed_as_table_and_as_json() {
    let table = call(&["runtimes"]);
    assert_eq!(table.code, Some(0));
    assert!(table.stdout.contains("LANGUAGE"), "{table:?}");
    let json = call(&["runtimes", "--json"]).json();
    let languages: Vec<_> = json.as_array().unwrap().iter().collect();
    for name in ["python", "bash", "c"] {
        assert!(table.stdout.contains(name), "{table:?}");
        let entry = languages.iter().find(|entry| entry["language"] == name);
        let entry = entry.unwrap_or_else(|| panic!("no {name} in {json}"));
        assert_eq!(entry["available"], !entry["version"].is_null(), "{entry}");
    }
}

#[test]
fn a_hundred_commands_at_once_need_few_descriptors_each() {
    let line = format!("ulimit -n 256; exec {BINARY} -q -l bash -c 'sleep 0.1; echo up'");
    let all: Vec<_> = (0..100)
        .map(|_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).stdin(Stdio::null());
            shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for command in all {
        let output = command.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), &*said), (Some(0), "up\n"), "{output:?}");
    }
}
