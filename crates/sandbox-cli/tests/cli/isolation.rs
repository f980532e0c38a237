//! Selection of the isolation backend.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use assert_cmd::Command;

use crate::support::{BINARY, CommandOutput, TIMEOUT, call, skip};

const ORDER: &str = "SANDBOX_RUN_ISOLATION_ORDER";
const HELLO: &[&str] = &["-l", "python", "-c", "print(6*7)"];

fn call_in_order(order: &str, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(BINARY);
    command.env(ORDER, order).args(args).timeout(TIMEOUT).output().unwrap().into()
}

/// Calls a copy of the command as a user who may not use runc.
fn call_as_nobody(directory: &Path, args: &[&str]) -> CommandOutput {
    let program = directory.join("sandbox-run");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.arg(program).args(args).current_dir("/").env("HOME", "/nonexistent");
    // Where the coverage of root's tests is written, nobody may not write.
    command.env_remove("LLVM_PROFILE_FILE");
    command.timeout(TIMEOUT).output().unwrap().into()
}

fn copy_for_all() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(BINARY, directory.path().join("sandbox-run")).unwrap();
    directory
}

fn can_become_nobody() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let can = is_root && Path::new("/usr/bin/setpriv").exists();
    if !can {
        skip("only root can become somebody else, with setpriv");
    }
    can
}

#[test]
fn the_report_says_what_auto_took_and_why() {
    let report = call(&[HELLO, &["--json"]].concat()).json();
    assert_eq!(report["isolation"], "native");
    assert_eq!(report["isolation_reason"], "auto: native is first in the order of preference");
    let named = call(&[HELLO, &["--json", "--isolation", "native"]].concat()).json();
    assert!(named.get("isolation_reason").is_none(), "{named}");
}

#[test]
fn auto_follows_the_order_that_is_set_or_typed() {
    let set = call_in_order("runc,native", &[HELLO, &["--json"]].concat()).json();
    assert_eq!((&set["isolation"], &set["stdout"]), (&"runc".into(), &"42\n".into()));
    assert_eq!(set["isolation_reason"], "auto: runc is first in the order of preference");
    let typed = [HELLO, &["--json", "--isolation-order", "native,runc"]].concat();
    assert_eq!(call_in_order("runc", &typed).json()["isolation"], "native");
}

/// All that Landlock enforces.
const LANDLOCK: &[&str] = &["landlock", "landlock-truncate", "landlock-ioctl", "landlock-scope"];

/// Calls the command where the kernel seems to have no Landlock.
fn call_without_landlock(args: &[&str]) -> CommandOutput {
    let mut command = Command::new("python3");
    command.args(["-c", include_str!("without-landlock.py"), BINARY]).args(args);
    command.env_remove(ORDER).timeout(TIMEOUT).output().unwrap().into()
}

#[test]
fn auto_takes_no_weaker_isolation_where_native_lacks_something() {
    let report = call_without_landlock(&[HELLO, &["--json"]].concat());
    assert_eq!(report.code, Some(125), "{report:?}");
    let report = report.json();
    assert_eq!((&report["status"], &report["stdout"]), (&"error".into(), &"".into()));
    let error = report["error"].as_str().unwrap();
    for part in ["'landlock'", "Linux 5.13", "--allow-missing landlock"] {
        assert!(error.contains(part), "no {part}: {error}");
    }
    let reason = report["isolation_reason"].as_str().unwrap();
    assert!(reason.contains("runc cannot enforce time-namespace, landlock here"), "{reason}");

    let allowed = [HELLO, &["--json", "--allow-missing", "landlock"]].concat();
    let report = call_without_landlock(&allowed).json();
    assert_eq!((&report["isolation"], &report["stdout"]), (&"native".into(), &"42\n".into()));
    assert_eq!(report["missing"], serde_json::json!(LANDLOCK));
}

#[test]
fn containers_refuse_a_host_without_landlock_too() {
    let named = [HELLO, &["--json", "--isolation", "runc"]].concat();
    let refused = call_without_landlock(&named);
    assert_eq!((refused.code, &refused.json()["stdout"]), (Some(125), &"".into()), "{refused:?}");
    let allowed = [&named[..], &["--allow-missing", "landlock"]].concat();
    let report = call_without_landlock(&allowed).json();
    assert_eq!((&report["isolation"], &report["stdout"]), (&"runc".into(), &"42\n".into()));
    let missing = report["missing"].as_array().unwrap();
    assert!(missing.contains(&"landlock".into()), "{report}");
}

#[test]
fn the_doctor_says_that_auto_refuses_what_native_lacks() {
    let json = call_without_landlock(&["doctor", "--json"]).json();
    let native = &json["isolations"][0];
    assert_eq!(
        (&native["name"], &native["lacks"]),
        (&"native".into(), &serde_json::json!(LANDLOCK))
    );
    assert_eq!(json["auto"]["isolation"], "native");
    let text = call_without_landlock(&["doctor"]);
    assert_eq!(text.code, Some(1), "{text:?}");
    for part in [
        "✗ landlock: the kernel has no Landlock\n  → use Linux 5.13 or later",
        "✗ landlock-scope: the kernel has no Landlock\n  → use Linux 6.12 or later; executions go on",
    ] {
        assert!(text.stdout.contains(part), "no {part}: {text:?}");
    }
}

#[test]
fn auto_skips_unavailable_backends_and_says_so() {
    if !can_become_nobody() {
        return;
    }
    let directory = copy_for_all();
    let runc_first = ["--isolation-order", "runc,native"];
    let answer = call_as_nobody(directory.path(), &[HELLO, &runc_first].concat());
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "42\n"), "{answer:?}");
    assert!(answer.stderr.contains("isolation native, auto: runc is not available"), "{answer:?}");
    let runc_only = [HELLO, &["--isolation-order", "runc"]].concat();
    call_as_nobody(directory.path(), &runc_only).is_refused_with(&["runc needs root"]);
    let named = [HELLO, &["--isolation", "runc"]].concat();
    call_as_nobody(directory.path(), &named).is_refused_with(&["runc needs root", "native"]);
}

#[test]
fn an_order_that_makes_no_sense_is_refused() {
    call_in_order("runc,magic", HELLO).is_refused_with(&["'magic'", "native"]);
    call_in_order("runc,runc", HELLO).is_refused_with(&["twice"]);
    let warm = [HELLO, &["--warm", "--isolation-order", "runc,native"]].concat();
    call(&warm).is_refused_with(&["--warm", "runc", "native sandboxes"]);
}

#[test]
fn the_doctor_looks_at_every_isolation_and_says_what_auto_takes() {
    let json = call_in_order("runc,native", &["doctor", "--json"]).json();
    let isolations = json["isolations"].as_array().unwrap();
    for name in ["native", "runc"] {
        let found = isolations.iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!((&found["available"], &found["reason"]), (&true.into(), &().into()), "{found}");
        assert_eq!(found["features"], serde_json::json!(["instances"]), "{found}");
    }
    let gvisor = isolations.iter().find(|entry| entry["name"] == "gvisor").unwrap();
    assert_eq!(gvisor["features"], serde_json::json!([]), "{gvisor}");
    assert_eq!(json["auto"]["isolation"], "runc");
    let text = call(&["doctor"]).stdout;
    assert!(text.contains("✓ runc: available"), "{text}");
    let native = "✓ native: available; sandboxes that run several processes\n";
    assert!(text.contains(native), "{text}");
    assert!(text.contains("→ auto selects native: native is first in the order"), "{text}");
}

#[test]
fn the_doctor_says_what_is_missing_for_an_isolation() {
    if !can_become_nobody() {
        return;
    }
    let directory = copy_for_all();
    let json = call_as_nobody(directory.path(), &["doctor", "--json"]).json();
    let isolations = json["isolations"].as_array().unwrap();
    let runc = isolations.iter().find(|entry| entry["name"] == "runc").unwrap();
    assert_eq!(runc["available"], false);
    assert!(runc["reason"].as_str().unwrap().contains("run as root"), "{runc}");
    let native = isolations.iter().find(|entry| entry["name"] == "native").unwrap();
    assert_eq!(native["available"], true);
    assert_eq!(json["auto"]["isolation"], "native");
    // Without a cgroup of its own it does not do everything, and nothing else does more.
    assert!(!native["lacks"].as_array().unwrap().is_empty(), "{native}");
    let text = call_as_nobody(directory.path(), &["doctor"]).stdout;
    assert!(text.contains("✗ runc: runc needs root here"), "{text}");
}
