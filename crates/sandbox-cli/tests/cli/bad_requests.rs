//! Invalid requests give one line and exit code 2.

use std::fs;

use crate::support::{call, call_with_stdin};

#[test]
fn a_mistyped_flag_is_corrected() {
    call(&["--lnag", "python"]).is_refused_with(&["'--lnag'", "'--lang'"]);
}

#[test]
fn an_invalid_limit_gives_the_format() {
    call(&["-l", "python", "-c", "1", "--timeout", "10"]).is_refused_with(&["--timeout", "500ms"]);
    call(&["-l", "python", "-c", "1", "--memory", "lots"]).is_refused_with(&["--memory", "64K"]);
}

#[test]
fn a_limit_of_zero_is_refused_with_the_range() {
    for flag in ["--pids", "--cpus", "--open-files"] {
        call(&["-l", "python", "-c", "1", flag, "0"]).is_refused_with(&[flag, "range"]);
    }
    call(&["-l", "python", "-c", "1", "--timeout", "0s"]).is_refused_with(&["--timeout", "range"]);
}

#[test]
fn an_unknown_language_lists_the_known_ones() {
    let answer = call(&["--lang", "pyhton", "--code", "1"]);
    answer.is_refused_with(&["'pyhton'", "python", "bash"]);
}

#[test]
fn an_invalid_language_name_is_refused() {
    call(&["--lang", "no such", "--code", "1"]).is_refused_with(&["'no such'"]);
}

#[test]
fn code_without_a_language_needs_the_flag() {
    call(&["--code", "print(1)"]).is_refused_with(&["--lang"]);
    call_with_stdin(&[], "print(1)").is_refused_with(&["--lang"]);
}

#[test]
fn a_file_of_unknown_language_needs_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.xyz");
    fs::write(&path, "x").unwrap();
    call(&[path.to_str().unwrap()]).is_refused_with(&["notes.xyz", "--lang"]);
}

#[test]
fn no_code_gives_an_example() {
    call(&["--lang", "python"]).is_refused_with(&["--code", "such as"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    call(&["/no/such/file.py"]).is_refused_with(&["'/no/such/file.py'", "no such file"]);
    call(&["-l", "python", "-c", "1", "--stdin", "/no/such"]).is_refused_with(&["/no/such"]);
    call(&["-l", "python", "-c", "1", "-i", "/no/such"]).is_refused_with(&["/no/such"]);
    call(&["-l", "python", "--template", "/no/such"]).is_refused_with(&["/no/such"]);
}

#[test]
fn code_and_file_together_are_refused() {
    call(&["-l", "python", "-c", "1", "x.py"]).is_refused_with(&["--code"]);
}

#[test]
fn standard_input_cannot_be_code_and_input_at_once() {
    let answer = call_with_stdin(&["-l", "python", "--stdin", "-"], "print(1)");
    answer.is_refused_with(&["--stdin -", "--file"]);
}

#[test]
fn a_missing_placeholder_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.py.j2");
    fs::write(&path, "print({{ number }}, {{ colour }})").unwrap();
    let path = path.to_str().unwrap();
    let answer = call(&["--template", path, "--set", "number=1"]);
    answer.is_refused_with(&["colour"]);
}

#[test]
fn a_value_needs_a_key() {
    call(&["-l", "python", "-c", "1", "-e", "HOME"]).is_refused_with(&["--env", "KEY=VALUE"]);
    call(&["-l", "python", "-c", "1", "--set", "a=1"]).is_refused_with(&["--template"]);
}

#[test]
fn a_planned_backend_is_refused_as_not_available() {
    let answer = call(&["--isolation", "firecracker", "-l", "python", "-c", "1"]);
    answer.is_refused_with(&["firecracker", "not available in this build"]);
}

#[test]
fn warm_is_refused_with_containers() {
    let answer = call(&["--warm", "--isolation", "runc", "-l", "python", "-c", "1"]);
    answer.is_refused_with(&["--warm", "--isolation runc"]);
}

#[test]
fn a_volume_is_refused_for_the_target_of_its_link() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/", &link).unwrap();
    for (host, reason) in [(link.clone(), "leads to /,"), (link.join("proc"), "leads to /proc,")] {
        let volume = format!("{}:/data", host.display());
        let answer = call(&["-l", "bash", "-c", "ls /data", "--volume", &volume]);
        answer.is_refused_with(&[&volume, reason]);
    }
}

#[test]
fn an_invalid_network_or_volume_is_refused() {
    let with = |flag: &str, value: &str| call(&["-l", "python", "-c", "1", flag, value]);
    with("--network", "host").is_refused_with(&["none, localhost or allowlist"]);
    with("--volume", "/proc:/p").is_refused_with(&["/proc"]);
    with("--volume", "/srv").is_refused_with(&["HOST:DEST"]);
    with("--workdir", "../x").is_refused_with(&["'..'"]);
    with("--collect", "/etc/*").is_refused_with(&["/etc/*"]);
    with("--allow-missing", "magic").is_refused_with(&["'magic'", "seccomp"]);
    with("--usage-interval", "1ms").is_refused_with(&["usage interval"]);
}

#[test]
fn a_project_without_a_main_file_needs_entry() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.py", "b.py"] {
        fs::write(directory.path().join(name), "").unwrap();
    }
    call(&[directory.path().to_str().unwrap()]).is_refused_with(&["--entry"]);
}

#[test]
fn an_output_directory_that_cannot_be_created_is_refused_before_anything_runs() {
    let answer = call(&["-l", "python", "-c", "1", "-o", "/dev/null/x"]);
    answer.is_refused_with(&["/dev/null/x"]);
}

#[test]
fn backend_options_are_refused_with_a_server() {
    let server = ["-l", "python", "-c", "1", "--server", "http://127.0.0.1:9"];
    for (option, value) in [
        ("--isolation-order", "runc,native"),
        ("--docker-host", "unix:///nowhere"),
        ("--docker-runtime", "runsc"),
        ("--oci-runtime", "crun"),
    ] {
        let line = [&server[..], &[option, value]].concat();
        call(&line).is_refused_with(&[option, "cannot be used with --server"]);
        let line = [&["run"], &line[..]].concat();
        call(&line).is_refused_with(&[option, "cannot be used with --server"]);
    }
}
