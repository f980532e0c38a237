//! Builds images from Debian packages, with the mirrors of this host.

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{BINARY, CommandOutput, TIMEOUT, family, skip, wait_until, wait_until_gone};

/// Calls the command with its store, and all that is temporary, in this directory.
fn call(place: &Path, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_IMAGES", place.join("images")).env("TMPDIR", temporary(place));
    command.arg("images").args(args).timeout(5 * TIMEOUT).output().unwrap().into()
}

fn temporary(place: &Path) -> std::path::PathBuf {
    let path = place.join("temporary");
    fs::create_dir_all(&path).unwrap();
    path
}

/// A directory in memory, where there is one: Debian's package manager waits for the disk hundreds of times.
fn quick_place() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    place.unwrap()
}

#[test]
fn an_image_is_built_whole_and_leaves_nothing_beside_it() {
    let place = quick_place();
    let place = place.path();
    let built = call(place, &["build", "sh"]);
    if built.stderr.contains("mmdebstrap needs root or a user namespace") {
        return skip("mmdebstrap cannot work here: neither root nor a range of users");
    }
    assert_eq!((built.code, built.stderr.as_str()), (Some(0), ""), "{built:?}");
    assert!(built.stdout.starts_with("built sandbox-run/bash:latest (sha256:"), "{built:?}");
    assert_eq!(built.stdout.lines().count(), 1, "{built:?}");
    assert_eq!(fs::read_dir(temporary(place)).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.join("images/temporary")).unwrap().count(), 0);
    let shown = call(place, &["show", "sandbox-run/bash", "--json"]).json();
    let path = shown["config"]["environment"][0][1].as_str().unwrap();
    assert!(path.split(':').any(|part| part == "/usr/bin"), "{shown}");
    let root = Path::new(shown["root"].as_str().unwrap());
    if rustix::process::geteuid().is_root() {
        // Its own shell, with its own libraries.
        let mut shell = Process::new("/usr/sbin/chroot");
        let shell = shell.arg(root).args(["/bin/bash", "-c", "echo $((6 * 7)); ls -A /dev"]);
        assert_eq!(String::from_utf8_lossy(&shell.output().unwrap().stdout), "42\n");
    }
    for gone in ["etc/apt/sources.list", "etc/resolv.conf", "var/lib/apt", "usr/share/man"] {
        assert!(!root.join(gone).exists(), "{gone}");
    }
    for kept in ["proc", "tmp", "usr/share/doc/bash/copyright", "var/lib/dpkg/status"] {
        assert!(root.join(kept).exists(), "{kept}");
    }
}

#[test]
fn a_build_that_is_ended_leaves_nothing() {
    let place = quick_place();
    let place = place.path();
    let mut command = Process::new(BINARY);
    command.env("SANDBOX_RUN_IMAGES", place.join("images")).env("TMPDIR", temporary(place));
    command.args(["images", "build", "bash"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // mmdebstrap has begun: its directory is in ours.
    wait_until("the build to begin", || {
        let ours = fs::read_dir(temporary(place)).unwrap().flatten().next();
        ours.is_some_and(|ours| fs::read_dir(ours.path()).is_ok_and(|inside| inside.count() > 0))
    });
    let family = family(child.id());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until_gone(&family);
    assert_eq!(fs::read_dir(temporary(place)).unwrap().count(), 0);
    assert_eq!(call(place, &["list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn what_cannot_be_built_is_one_line() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    call(place, &["build"]).is_refused_with(&["<LANG>"]);
    call(place, &["build", "pythn"])
        .is_refused_with(&["unknown language 'pythn'", "did you mean 'python'?"]);
    call(place, &["build", "python@3.11"]).is_refused_with(&["cannot select version", "--suite"]);
    call(place, &["build", "bash", "--suite", "a b"]).is_refused_with(&["such as bookworm"]);
    call(place, &["build", "bash", "--name", "../x"]).is_refused_with(&["invalid image name"]);
    assert!(!place.join("images").exists(), "nothing was made");
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_IMAGES", place.join("images")).env("PATH", place);
    let output = command.args(["images", "build", "bash"]).timeout(TIMEOUT).output();
    CommandOutput::from(output.unwrap())
        .is_refused_with(&["cannot build images without mmdebstrap", "apt-get install mmdebstrap"]);
}

#[test]
fn what_mmdebstrap_says_when_it_fails_is_passed_on() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let failed = call(place, &["build", "bash", "--suite", "nosuchrelease"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(125), ""), "{failed:?}");
    assert_eq!(failed.stderr.lines().count(), 1, "{failed:?}");
    assert!(failed.stderr.contains("mmdebstrap failed"), "{failed:?}");
    assert!(failed.stderr.contains("nosuchrelease"), "{failed:?}");
    assert_eq!(fs::read_dir(temporary(place)).unwrap().count(), 0);
}
