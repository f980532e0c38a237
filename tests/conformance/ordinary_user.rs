//! The same without root: what can be had then works, and what cannot is refused or listed.

use sandbox::{ByteSize, Protection, Sandbox, Status};
use sandbox_tests::backend::show;
use sandbox_tests::user::as_ordinary_user;

use crate::table::{assert_consistent, bash, c, mib, millis, python};

fn sandbox() -> Sandbox {
    Sandbox::new().expect("an ordinary user can start a sandbox")
}

/// Whether this user has delegated cgroups, as from a service manager.
fn has_memory_limits(sandbox: &Sandbox) -> bool {
    let missing = &sandbox.capabilities().missing;
    missing.iter().all(|missing| missing.protection != Protection::Memory)
}

#[test]
fn an_ordinary_user_runs_programs_in_every_language() {
    as_ordinary_user("ordinary_user::an_ordinary_user_runs_programs_in_every_language", || {
        let sandbox = sandbox();
        let compiled = "#include <stdio.h>\nint main(void) { puts(\"42\"); }";
        for request in [python("print(6 * 7)"), bash("echo 42"), c(compiled)] {
            let report = sandbox.execute(request.build().unwrap()).unwrap();
            show(&report);
            assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "42\n"));
            assert_consistent(&report);
            assert!(report.enforced.contains(&Protection::Seccomp));
            assert_eq!(report.enforced.contains(&Protection::Memory), has_memory_limits(&sandbox));
            assert_eq!(report.missing.contains(&Protection::Memory), !has_memory_limits(&sandbox));
        }
    });
}

#[test]
fn an_ordinary_user_is_refused_a_limit_that_cannot_be_held() {
    as_ordinary_user(
        "ordinary_user::an_ordinary_user_is_refused_a_limit_that_cannot_be_held",
        || {
            let sandbox = sandbox();
            if has_memory_limits(&sandbox) {
                return;
            }
            let request = || python("print('ran')").limits(limits!(with_memory(mib(64))));
            let report = sandbox.execute(request().build().unwrap()).unwrap();
            show(&report);
            assert_eq!((report.status, report.stdout.as_str()), (Status::Error, ""));
            assert_consistent(&report);
            let error = report.error.unwrap();
            assert!(error.contains("'memory'") && error.contains("root"), "{error}");

            let request = request().allow_missing(Protection::Memory);
            let report = sandbox.execute(request.build().unwrap()).unwrap();
            assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "ran\n"));
            assert!(report.missing.contains(&Protection::Memory));
            assert!(!report.enforced.contains(&Protection::Memory));
        },
    );
}

#[test]
fn an_ordinary_user_has_the_other_limits() {
    as_ordinary_user("ordinary_user::an_ordinary_user_has_the_other_limits", || {
        let sandbox = sandbox();
        let cases = [
            (bash("sleep 60").limits(limits!(with_wall_time(millis(500)))), Status::Timeout),
            (
                bash("while :; do :; done").limits(limits!(with_wall_time(millis(500)))),
                Status::Timeout,
            ),
            (bash("kill -STOP $$").limits(limits!(with_wall_time(millis(500)))), Status::Timeout),
            (bash("yes"), Status::OutputLimit),
            (bash("exit 3"), Status::RuntimeError),
            (bash("kill -SEGV $$"), Status::RuntimeError),
            (c("int main(void) { return }"), Status::CompileError),
            (
                bash("head -c 2M /dev/zero > big 2>/dev/null && exit 1; rm big; exit 0")
                    .limits(limits!(with_disk(mib(1)))),
                Status::Completed,
            ),
            (bash("(setsid sleep 60 &); true"), Status::Completed),
        ];
        for (request, status) in cases {
            let report = sandbox.execute(request.build().unwrap()).unwrap();
            show(&report);
            assert_eq!(report.status, status, "{:?}", report.error);
            assert_consistent(&report);
        }
    });
}

#[test]
fn an_ordinary_users_processes_are_limited() {
    as_ordinary_user("ordinary_user::an_ordinary_users_processes_are_limited", || {
        let code = "import os, time\nmade = 0\n\
                    try:\n    while made < 100:\n        if os.fork() == 0: time.sleep(60)\n        made += 1\n\
                    except OSError: pass\nprint(made)";
        let request = python(code).limits(limits!(with_pids(8))).build().unwrap();
        let report = sandbox().execute(request).unwrap();
        show(&report);
        let made: u32 = report.stdout.trim().parse().unwrap();
        assert!((5..=8).contains(&made), "{made} processes beside the first");
    });
}

#[test]
fn an_ordinary_users_program_sees_the_same_world() {
    as_ordinary_user("ordinary_user::an_ordinary_users_program_sees_the_same_world", || {
        let script = "id -u; whoami; uname -n; ls -d /home /root /var /sys 2>/dev/null; \
                      grep CapEff /proc/self/status; touch /usr/x /x 2>/dev/null || echo read-only; \
                      echo own > file; cat file; ls -d /proc/[0-9]* | wc -l";
        let report = sandbox().execute(bash(script).build().unwrap()).unwrap();
        show(&report);
        let expected = "1000\nsandbox\nsandbox\nCapEff:\t0000000000000000\nread-only\nown\n";
        assert!(report.stdout.starts_with(expected), "{}", report.stdout);
        let processes: u32 = report.stdout.lines().last().unwrap().parse().unwrap();
        assert!(processes <= 4, "{processes} processes are in sight");
    });
}

#[test]
fn an_ordinary_users_directories_come_back_with_hashes_and_are_bounded() {
    let name = "ordinary_user::an_ordinary_users_directories_come_back_with_hashes_and_are_bounded";
    as_ordinary_user(name, || {
        let script = "mkdir -p out/deep; printf '\\xff' > out/deep/blob; echo x > other; \
                      sha256sum out/deep/blob";
        let report = sandbox().execute(bash(script).collect("out").build().unwrap()).unwrap();
        show(&report);
        let [file] = report.output_files.as_slice() else { panic!("{:?}", report.skipped_files) };
        assert_eq!((file.path.as_str(), file.content.as_str()), ("out/deep/blob", "/w=="));
        assert_eq!(report.stdout, format!("{}  {}\n", file.sha256, file.path));
        let large = bash("mkdir out; head -c 40K /dev/zero > out/a; cp out/a out/b").collect("out");
        let large = large.limits(limits!(with_output(ByteSize::kib(64))));
        let report = sandbox().execute(large.build().unwrap()).unwrap();
        assert_eq!(report.status, Status::OutputLimit, "{:?}", report.error);
    });
}

#[test]
fn an_ordinary_users_files_go_in_and_come_out() {
    as_ordinary_user("ordinary_user::an_ordinary_users_files_go_in_and_come_out", || {
        use std::os::unix::fs::MetadataExt;
        let place = tempfile::tempdir().unwrap();
        let volume = format!("{}:/out:rw", place.path().display());
        let request = bash("cat sub/in; echo out > sub/out; echo kept > /out/kept")
            .file("sub/in", "in")
            .collect("**")
            .volume(volume.parse().unwrap());
        let report = sandbox().execute(request.build().unwrap()).unwrap();
        show(&report);
        assert_eq!((report.stdout.as_str(), report.output_files.len()), ("in", 1));
        assert_eq!(report.output_files[0].path, "sub/out");
        let owner = std::fs::metadata(place.path().join("kept")).unwrap().uid();
        assert_eq!(owner, rustix::process::geteuid().as_raw());
    });
}
