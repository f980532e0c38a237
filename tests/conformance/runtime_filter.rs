//! The system-call profile as a container runtime applies it: a bundle that is written here, runc or crun, and a program that
//! tries calls. It contains nothing from sandbox-run but the profile.
#![cfg(target_arch = "x86_64")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use sandbox_linux::private_mounts;
use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use sandbox_tests::skip::skip;
use serde_json::{Value, json};

/// Bits above those that the kernel looks at.
const HIGH: u64 = 0xdead_beef_0000_0000;
const NO_DESCRIPTOR: u64 = 99;

const EPERM: i64 = 1;
const EBADF: i64 = 9;
const EFAULT: i64 = 14;
const EINVAL: i64 = 22;
const ESPIPE: i64 = 29;
const ENOSYS: i64 = 38;
const EPROTONOSUPPORT: i64 = 93;
const EAFNOSUPPORT: i64 = 97;
const FINE: i64 = 0;

/// A call, its number and arguments, and how it ends: behind the profile alone, and behind the one for the agent. Without a filter each
/// that is refused would end otherwise.
const CALLS: &[(&str, u64, [u64; 4], i64, i64)] = &[
    ("getpid", 39, [0; 4], FINE, FINE),
    ("ptrace", 101, [16, 4_000_000, 0, 0], EPERM, ENOSYS),
    ("unshare nothing", 272, [0; 4], EPERM, ENOSYS),
    ("clone3", 435, [0; 4], ENOSYS, ENOSYS),
    ("clone into a user namespace", 56, [0x1000_0011 | HIGH, 0, 0, 0], EPERM, ENOSYS),
    ("a local socket", 41, [1 | HIGH, 1 | HIGH, 0, 0], FINE, FINE),
    ("a packet socket", 41, [17, 3, 0, 0], EAFNOSUPPORT, ENOSYS),
    ("a packet socket, high bits", 41, [0x11 | HIGH, 3, 0, 0], EAFNOSUPPORT, ENOSYS),
    ("a multipath socket", 41, [2 | HIGH, 1, 262, 0], EPROTONOSUPPORT, EPROTONOSUPPORT),
    ("type into a terminal", 16, [NO_DESCRIPTOR, 0x5412, 0, 0], EPERM, ENOSYS),
    ("type, high bits", 16, [NO_DESCRIPTOR, 0x5412 | HIGH, 0, 0], EPERM, ENOSYS),
    ("size of a terminal", 16, [NO_DESCRIPTOR, 0x5413, 0, 0], EBADF, EBADF),
    ("size, high bits", 16, [NO_DESCRIPTOR, 0x5413 | HIGH, 0, 0], EBADF, EBADF),
    ("read at an offset", 17, [NO_DESCRIPTOR, 0, 0, 1], EBADF, EBADF),
    ("the announced exit", 17, [NO_DESCRIPTOR, 0, 0, 0x7ba5_e1f0_0000_0000], ESPIPE, ENOSYS),
    (
        "the announced exit with one bit changed",
        17,
        [NO_DESCRIPTOR, 0, 0, 0x7ba5_e1f0_0000_0001],
        EBADF,
        EBADF,
    ),
    ("switch own counters off", 157, [31, 0, 0, 0], EINVAL, ENOSYS),
    ("ask whether it can be dumped", 157, [3 | HIGH, 0, 0, 0], FINE, FINE),
    ("ask for the personality", 135, [0xffff_ffff | HIGH, 0, 0, 0], FINE, FINE),
    ("make all memory executable", 135, [0x0040_0000, 0, 0, 0], EINVAL, ENOSYS),
    ("a filter", 317, [1, 0, 0, 0], EINVAL, ENOSYS),
    ("a filter with a listener", 317, [1, 8, 0, 0], EINVAL, EFAULT),
    ("a filter that logs", 317, [1, 2, 0, 0], EINVAL, ENOSYS),
    ("a ring", 425, [0; 4], ENOSYS, ENOSYS),
    ("keys", 250, [9999, 0, 0, 0], EPERM, ENOSYS),
    ("a number without a name", 1000, [0; 4], ENOSYS, ENOSYS),
];

/// Makes each call, and prints its error number, or 0.
const PROGRAM: &str = "
import ctypes, json, os, sys
CLONE = 56
libc = ctypes.CDLL(None, use_errno=True)
ended = []
for number, arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_ulong(number), *map(ctypes.c_ulong, arguments))
    if number == CLONE and result == 0:
        os._exit(0)
    ended.append(ctypes.get_errno() if result == -1 else 0)
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(json.dumps({'ended': ended, 'bounding': status['CapBnd'].strip()}))
";

fn bundle(directory: &Path, seccomp: &Value, privileges: bool) {
    let root = directory.join("root");
    // crun asks for the second.
    for place in ["proc", "dev", "usr"] {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    for link in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
    let calls: Vec<_> =
        CALLS.iter().map(|(_, number, arguments, ..)| json!([number, arguments])).collect();
    let kinds = ["mount", "pid", "ipc", "uts", "network"];
    let namespaces: Vec<_> = kinds.iter().map(|kind| json!({"type": kind})).collect();
    let none: &[&str] = &[];
    let config = json!({
        "ociVersion": "1.0.2",
        "root": {"path": "root", "readonly": true},
        "process": {
            "user": {"uid": 1000, "gid": 1000}, "cwd": "/", "env": ["PATH=/usr/bin"],
            "args": ["/usr/bin/python3", "-I", "-c", PROGRAM, Value::from(calls).to_string()],
            "noNewPrivileges": !privileges,
            "capabilities": {
                "bounding": none, "effective": none, "inheritable": none, "permitted": none, "ambient": none,
            },
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
        ],
        "linux": {"namespaces": namespaces, "seccomp": seccomp},
    });
    fs::write(directory.join("config.json"), config.to_string()).unwrap();
}

const RUNTIMES: [&str; 2] = ["runc", "crun"];

/// Has a runtime run the program behind a filter, and gives what it printed.
fn run(runtime: &str, name: &str, seccomp: &Value, privileges: bool) -> Value {
    let directory = tempfile::tempdir().unwrap();
    bundle(directory.path(), seccomp, privileges);
    let mut command = Command::new(runtime);
    if runtime == "crun" {
        // It does nothing where it finds cgroups of both versions.
        private_mounts::hide(&mut command, &[c"/sys/fs/cgroup/unified"]);
    }
    command.arg("--root").arg(directory.path().join("state")).arg("run");
    command.arg("--bundle").arg(directory.path());
    let output = command.arg(format!("{name}-{}", std::process::id())).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {complaint}"))
}

/// Those of them that are here.
fn runtimes(test: &str) -> impl Iterator<Item = &'static str> {
    let is_root = rustix::process::geteuid().is_root();
    RUNTIMES.into_iter().filter(move |runtime| {
        let is_here = is_root && Command::new(runtime).arg("--version").output().is_ok();
        if !is_here {
            skip(test, &format!("it takes {runtime}, and root"));
        }
        is_here
    })
}

fn each_call_ends_as_expected(name: &str, filter: ContainerFilter, privileges: bool) {
    let seccomp = Profile::builtin().oci_json(filter, Arch::NATIVE);
    for runtime in runtimes(name) {
        let printed = run(runtime, name, &seccomp, privileges);
        for ((call, _, _, alone, around), ended) in
            CALLS.iter().zip(printed["ended"].as_array().unwrap())
        {
            let expected = if filter == ContainerFilter::Alone { alone } else { around };
            assert_eq!(ended.as_i64(), Some(*expected), "{call} with {runtime}");
        }
        assert_eq!(printed["bounding"], "0000000000000000");
    }
}

#[test]
fn denied_calls_behind_the_profile_alone_fail_as_in_the_native_backend() {
    each_call_ends_as_expected("filter-alone", ContainerFilter::Alone, false);
}

#[test]
fn a_container_that_may_get_privileges_still_loses_its_capabilities() {
    each_call_ends_as_expected("filter-privileges", ContainerFilter::Alone, true);
}

#[test]
fn calls_that_the_agent_would_answer_fail_without_the_agent() {
    each_call_ends_as_expected("filter-around", ContainerFilter::AroundAgent, false);
}

#[test]
fn without_the_profile_every_denied_call_has_another_outcome() {
    let name = "filter-none";
    if !runtimes(name).any(|runtime| runtime == "runc") {
        return;
    }
    let printed = run("runc", name, &json!({"defaultAction": "SCMP_ACT_ALLOW"}), false);
    for ((call, _, _, alone, around), ended) in
        CALLS.iter().zip(printed["ended"].as_array().unwrap())
    {
        let ended = ended.as_i64().unwrap();
        let is_refused = alone != around || [ENOSYS, EPROTONOSUPPORT].contains(alone);
        let has_no_other_end =
            *call == "a number without a name" || *call == "a filter with a listener";
        assert!(has_no_other_end || (ended != *alone) == is_refused, "{call}: {ended}");
    }
}
