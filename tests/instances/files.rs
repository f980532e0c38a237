//! Files of an instance: what processes and the supervisor see of each other's.

use sandbox::{Instance, RelativePath};
use sandbox_tests::user::as_ordinary_user;

use crate::harness::{bash, output, with_instance, with_native_instance};

fn path(text: &str) -> RelativePath {
    text.parse().unwrap()
}

fn names(instance: &dyn Instance, directory: Option<&str>) -> Vec<String> {
    let directory = directory.map(path);
    let entries = instance.list(directory.as_ref()).unwrap();
    entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
}

#[test]
fn processes_and_the_supervisor_share_the_work_directory() {
    let test = || {
        with_instance(|instance| {
            output(instance, bash("echo one > first; mkdir -p sub; echo two > sub/second"));
            assert_eq!(output(instance, bash("cat first sub/second")), "one\ntwo\n");
            assert_eq!(instance.get(&path("sub/second"), 100).unwrap(), b"two\n");
            instance.put(&path("new/script"), b"#!/bin/sh\necho ran", true).unwrap();
            instance.put(&path("first"), &vec![b'x'; 1 << 20], false).unwrap();
            assert_eq!(output(instance, bash("new/script; wc -c < first")), "ran\n1048576\n");
            assert_eq!(
                output(instance, bash("echo y >> first; touch new/z; id -un; stat -c %U first")),
                "sandbox\nsandbox\n"
            );
            assert_eq!(names(instance, None), ["first", "new", "sub"]);
            assert_eq!(names(instance, Some("new")), ["script", "z"]);
            assert!(instance.get(&path("first"), 100).is_err(), "it is larger");
            instance.remove(&path("new")).unwrap();
            assert_eq!(names(instance, None), ["first", "sub"]);
        });
    };
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user("files::processes_and_the_supervisor_share_the_work_directory", test);
}

/// The program plants links in the way of the supervisor.
#[test]
fn links_lead_the_supervisor_nowhere() {
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("secret"), "of the host").unwrap();
    let host = host.path().to_str().unwrap();
    with_instance(|instance| {
        let plant = format!(
            "ln -s {host} out; ln -s {host}/secret file; ln -s /etc etc; ln -s /tmp tmp; mkfifo pipe"
        );
        output(instance, bash(&plant));
        for name in ["out/secret", "file", "etc/passwd", "pipe", "tmp"] {
            assert!(instance.get(&path(name), 100).is_err(), "{name} was read");
        }
        for name in ["out", "etc", "pipe"] {
            assert!(instance.list(Some(&path(name))).is_err(), "{name} was listed");
        }
        for name in ["out/secret", "out/new", "etc/new"] {
            assert!(instance.put(&path(name), b"x", false).is_err(), "{name} was written");
            assert!(instance.remove(&path(name)).is_err(), "{name} was removed");
        }
        // What is in the place of a file is replaced and not written through.
        for name in ["file", "pipe"] {
            instance.put(&path(name), b"new", false).unwrap();
            assert_eq!(instance.get(&path(name), 100).unwrap(), b"new");
        }
        assert_eq!(std::fs::read_to_string(format!("{host}/secret")).unwrap(), "of the host");
        assert_eq!(std::fs::read_dir(host).unwrap().count(), 1);
    });
}

/// The native backend resolves links as the program does. Containers refuse them.
#[test]
fn a_link_in_the_way_means_what_it_means_to_the_program() {
    with_native_instance(|instance| {
        output(instance, bash("ln -s /tmp tmp"));
        instance.put(&path("tmp/inside"), b"x", false).unwrap();
        assert_eq!(output(instance, bash("cat /tmp/inside")), "x");
    });
}

#[test]
fn files_count_against_the_disk_limit() {
    with_instance(|instance| {
        output(instance, bash("head -c 10G /dev/zero > full 2>/dev/null; true"));
        assert!(instance.put(&path("more"), &vec![0; 1 << 20], false).is_err());
        instance.remove(&path("full")).unwrap();
        instance.put(&path("more"), &vec![0; 1 << 20], false).unwrap();
    });
}
