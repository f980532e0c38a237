//! Installs toolchains from the real registries.

use std::path::Path;

use assert_cmd::Command;

use crate::support::{BINARY, CommandOutput, TIMEOUT, call};

/// Calls the command with an empty home, where no toolchain is.
fn call_in(home: &Path, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(BINARY);
    for variable in ["XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
        command.env_remove(variable);
    }
    command.env("HOME", home).args(args).timeout(10 * TIMEOUT).output().unwrap().into()
}

#[test]
fn a_language_is_installed_and_then_works() {
    let home = tempfile::tempdir().unwrap();
    let run = ["--lang", "ts", "--quiet", "--code", "const n: number = 6 * 7; console.log(n)"];
    call_in(home.path(), &run).is_refused_with(&["typescript is not available", "npm install"]);
    let installed = call_in(home.path(), &["runtimes", "--install", "ts", "bash", "--json"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert!(installed.stderr.contains("npm install"), "{installed:?}");
    assert!(installed.stderr.contains("bash is already installed"), "{installed:?}");
    let json = installed.json();
    let mut languages = json.as_array().unwrap().iter();
    let typescript = languages.find(|entry| entry["language"] == "typescript").unwrap();
    assert_eq!(typescript["available"], true, "{typescript}");
    let answer = call_in(home.path(), &run);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "42\n"), "{}", answer.stderr);
}

#[test]
fn what_is_no_language_cannot_be_installed() {
    call(&["runtimes", "--install", "befunge"]).is_refused_with(&["unknown language 'befunge'"]);
    call(&["runtimes", "--install"]).is_refused_with(&["--install"]);
}
