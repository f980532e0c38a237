//! Directories that outlive executions, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandbox::{
    ByteSize, ExecuteError, Protection, Report, RequestBuilder, Sandbox, Status, Stdin,
    WorkspaceError, WorkspaceQuota, WorkspaceReport, Workspaces,
};
use sandbox_tests::backend::{Feature, show, with_each_backend_set_up};
use sandbox_tests::skip::skip;
use sandbox_tests::user::as_ordinary_user;

use crate::table::{bash, c, mib, millis, python};

const QUOTA: WorkspaceQuota = WorkspaceQuota { bytes: ByteSize::mib(4), files: 200 };

/// A sandbox and where it keeps its workspaces.
struct Host<'a> {
    sandbox: &'a Sandbox,
    workspaces: &'a Workspaces,
}

/// What an export has under a name.
#[derive(Debug, PartialEq, Eq)]
struct Exported {
    kind: tar::EntryType,
    mode: u32,
    content: Vec<u8>,
    target: Option<String>,
}

impl Host<'_> {
    fn run(&self, request: RequestBuilder) -> Report {
        let report = self.sandbox.execute(request.build().unwrap());
        let report = report.unwrap_or_else(|error| panic!("{}", sandbox::with_causes(&error)));
        show(&report);
        report
    }

    /// Runs a script in the workspace `w`.
    fn script(&self, script: &str) -> Report {
        self.run(bash(script).workspace("w"))
    }

    fn output(&self, script: &str) -> String {
        let report = self.script(script);
        assert_eq!(report.status, Status::Completed, "{:?} {}", report.error, report.stderr);
        report.stdout
    }

    fn export(&self) -> BTreeMap<String, Exported> {
        let mut bytes = Vec::new();
        self.workspaces.export(&"w".parse().unwrap(), &mut bytes).unwrap();
        let mut found = BTreeMap::new();
        let mut archive = tar::Archive::new(bytes.as_slice());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let path =
                String::from_utf8_lossy(&entry.path_bytes()).trim_end_matches('/').to_owned();
            let link = entry.link_name_bytes();
            let target = link.map(|target| String::from_utf8_lossy(&target).into_owned());
            let (kind, mode) = (entry.header().entry_type(), entry.header().mode().unwrap());
            found.insert(path, Exported { kind, mode, content, target });
        }
        found
    }

    fn names(&self) -> Vec<String> {
        self.export().into_keys().collect()
    }
}

fn of(report: &Report) -> &WorkspaceReport {
    report.workspace.as_ref().expect("the report tells of the workspace")
}

/// Runs a test with each backend, and once more as an ordinary user. `name` is the test's.
fn with_workspaces(name: &str, test: impl Fn(&Host<'_>)) {
    let test = || {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let workspaces = Workspaces::in_directory(place.path()).with_quota(QUOTA);
        let set_up = |builder: sandbox::SandboxBuilder| builder.workspaces(workspaces.clone());
        with_each_backend_set_up(&[Feature::Workspaces], set_up, |sandbox| {
            test(&Host { sandbox, workspaces: &workspaces });
            assert_nothing_half_done(place.path());
            remove_all(&workspaces);
        });
    };
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user(&format!("workspaces::{name}"), test);
}

/// The next backend begins with none.
fn remove_all(workspaces: &Workspaces) {
    for workspace in workspaces.list().unwrap() {
        workspaces.remove(&workspace.name).unwrap();
    }
}

fn assert_nothing_half_done(place: &Path) {
    if let Ok(entries) = std::fs::read_dir(place.join("temporary")) {
        assert_eq!(entries.count(), 0, "something is left");
    }
}

#[test]
fn a_build_and_a_test_share_a_workspace() {
    with_workspaces("a_build_and_a_test_share_a_workspace", |host| {
        let built = host.script(
            "mkdir -p out/deep; echo data > out/deep/data; printf '#!/bin/sh\\necho ran' > tool; \
             chmod 755 tool; ln -s out/deep link; touch -d '2020-01-02 03:04:05.678' out/deep/data",
        );
        assert_eq!(built.status, Status::Completed, "{}", built.stderr);
        let workspace = of(&built);
        assert!(workspace.saved && workspace.reason.is_none(), "{workspace:?}");
        assert_eq!(workspace.size.files, 5);
        let tested = host.output(
            "pwd; ./tool; cat link/data; stat -c '%U %a %y' out/deep/data; ls -A; echo more > new",
        );
        let expected = "/work\nran\ndata\nsandbox 644 2020-01-02 03:04:05.678000000 +0000\n\
                        link\nmain.sh\nout\ntool\n";
        assert_eq!(tested, expected);
        assert_eq!(host.names(), ["link", "new", "out", "out/deep", "out/deep/data", "tool"]);
    });
}

#[test]
fn modules_of_an_earlier_phase_can_be_imported() {
    with_workspaces("modules_of_an_earlier_phase_can_be_imported", |host| {
        host.run(python("open('helper.py', 'w').write('answer = 42')").workspace("w"));
        let report = host.run(python("import helper; print(helper.answer)").workspace("w"));
        assert_eq!(report.stdout, "42\n", "{}", report.stderr);
    });
}

#[test]
fn what_the_request_brings_is_kept_only_if_it_was_there_or_was_changed() {
    with_workspaces(
        "what_the_request_brings_is_kept_only_if_it_was_there_or_was_changed",
        |host| {
            host.output("echo old > known; echo kept > other");
            let request = bash("cat known other; echo changed >> changed")
                .file("known", "new\n")
                .file("lib/same", "same")
                .file("changed", "");
            let report = host.run(request.workspace("w"));
            assert_eq!(report.stdout, "new\nkept\n", "{}", report.stderr);
            assert_eq!(host.names(), ["changed", "known", "other"]);
            assert_eq!(host.export()["known"].content, b"new\n");
            // Nor is what was compiled.
            let program =
                "#include <stdio.h>\nint main(void) { fputs(\"x\", fopen(\"made\", \"w\")); }";
            let report = host.run(c(program).workspace("c"));
            assert_eq!(of(&report).size.files, 1, "{report:?}");
        },
    );
}

#[test]
fn a_file_of_the_request_does_not_take_the_place_of_a_directory() {
    with_workspaces("a_file_of_the_request_does_not_take_the_place_of_a_directory", |host| {
        host.output("mkdir dir; ln -s /etc link");
        for path in ["dir", "link/x"] {
            let request = bash("true").file(path, "").workspace("w").build().unwrap();
            let error = host.sandbox.execute(request).unwrap_err();
            assert!(matches!(error, ExecuteError::Unsupported(_)), "{path}: {error:?}");
        }
    });
}

#[test]
fn read_only_use_keeps_nothing() {
    with_workspaces("read_only_use_keeps_nothing", |host| {
        let request = bash("true").workspace("w:ro").build().unwrap();
        let error = host.sandbox.execute(request).unwrap_err();
        assert!(
            matches!(error, ExecuteError::Workspace(WorkspaceError::NoSuchWorkspace(_))),
            "{error:?}"
        );
        host.output("echo kept > kept");
        let report = host.run(bash("rm kept; echo own > own; cat own").workspace("w:ro"));
        assert_eq!(report.stdout, "own\n", "{}", report.stderr);
        assert!(!of(&report).saved);
        assert_eq!(host.names(), ["kept"]);
    });
}

#[test]
fn a_program_that_was_stopped_leaves_the_workspace_as_it_was() {
    with_workspaces("a_program_that_was_stopped_leaves_the_workspace_as_it_was", |host| {
        host.output("echo before > file");
        let change = "echo after > file; echo x > more;";
        let limits = limits!(with_wall_time(millis(700)));
        let stopped = bash(&format!("{change} sleep 60")).limits(limits);
        let report = host.run(stopped.workspace("w"));
        assert_eq!(report.status, Status::Timeout);
        assert!(!of(&report).saved && of(&report).reason.is_some(), "{:?}", of(&report));
        let report = host.run(bash(&format!("{change} yes")).workspace("w"));
        assert_eq!((report.status, of(&report).saved), (Status::OutputLimit, false));
        assert_eq!(host.names(), ["file"]);
        assert_eq!(host.export()["file"].content, b"before\n");
        // One that ended by itself is another matter, however it ended.
        for end in ["exit 3", "kill -KILL $$"] {
            let report = host.script(&format!("{change} {end}"));
            assert_eq!((report.status, of(&report).saved), (Status::RuntimeError, true));
        }
        assert_eq!(host.names(), ["file", "more"]);
        // What was never kept is not there after it failed.
        let limits = limits!(with_wall_time(millis(300)));
        host.run(bash("sleep 60").limits(limits).workspace("new"));
        assert_eq!(host.workspaces.list().unwrap().len(), 1);
    });
}

#[test]
fn no_more_than_the_quota_can_be_written() {
    with_workspaces("no_more_than_the_quota_can_be_written", |host| {
        let report =
            host.script("head -c 5M /dev/zero > large; echo $?; rm large; echo ok > small");
        assert_eq!(report.stdout, "1\n", "{}", report.stderr);
        assert!(of(&report).saved, "{:?}", of(&report));
        let many = "i=0; while [ $i -lt 100000 ] && : > f$i; do i=$((i+1)); done 2>/dev/null; \
                    test $i -lt 250 && test $i -gt 150 && echo stopped; rm f*";
        let report = host.script(many);
        assert_eq!(report.stdout, "stopped\n", "{}", report.stderr);
        assert_eq!(host.names(), ["small"]);
        // Beside the workspace there is the disk limit, as always.
        assert_eq!(host.output("head -c 5M /dev/zero > /tmp/large && echo fits"), "fits\n");
        let request =
            bash("head -c 3M /dev/zero > large && echo fits; head -c 3M /dev/zero > /tmp/x")
                .limits(limits!(with_disk(mib(1))));
        let report = host.run(request.workspace("w"));
        assert_eq!((report.stdout.as_str(), report.exit_code), ("fits\n", 1));
        assert!(of(&report).saved);
    });
}

#[test]
fn a_workspace_counts_against_the_memory_limit() {
    let place = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::in_directory(&place.path().join("w"));
    let set_up = |builder: sandbox::SandboxBuilder| builder.workspaces(workspaces.clone());
    with_each_backend_set_up(&[Feature::Workspaces], set_up, |sandbox| {
        let missing = &sandbox.capabilities().missing;
        if missing.iter().any(|missing| missing.protection == Protection::Memory) {
            return skip("workspace_memory", "memory is not limited here");
        }
        let host = Host { sandbox, workspaces: &workspaces };
        host.output("head -c 60M /dev/zero > file");
        let limits = limits!(with_memory(mib(16)));
        let report = host.run(bash("true").limits(limits).workspace("w"));
        assert_eq!((report.status, of(&report).saved), (Status::MemoryLimit, false));
        assert_eq!(host.output("stat -c %s file"), "62914560\n");
    });
}

#[test]
fn one_execution_writes_while_others_read() {
    with_workspaces("one_execution_writes_while_others_read", |host| {
        host.output("echo first > file");
        let (reader, writer) = std::io::pipe().unwrap();
        let waiting = bash("echo second > file; echo ready; read line; true")
            .stdin(Stdin::from_reader(reader))
            .workspace("w");
        let mut execution = host.sandbox.start(waiting.build().unwrap()).unwrap();
        let ready = execution.events().find(|event| event.kind.name() == "stdout");
        assert!(ready.is_some(), "it ended without a word");
        let second = host.sandbox.execute(bash("true").workspace("w").build().unwrap());
        assert!(
            matches!(second, Err(ExecuteError::Workspace(WorkspaceError::InUse(_)))),
            "{second:?}"
        );
        assert_eq!(host.run(bash("cat file").workspace("w:ro")).stdout, "first\n");
        drop(writer);
        assert!(of(&execution.wait().unwrap()).saved);
        assert_eq!(host.output("cat file"), "second\n");
    });
}

#[test]
fn links_are_kept_as_links_and_lead_nowhere_on_the_host() {
    with_workspaces("links_are_kept_as_links_and_lead_nowhere_on_the_host", |host| {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "the secret of the host").unwrap();
        let target = secret.path().display().to_string();
        let made = format!(
            "ln -s {target} absolute; ln -s ../../..{target} up; ln -s /proc/self/root{target} root; \
             ln -s / top; ln -s loop loop; echo x > one; ln one two"
        );
        assert!(of(&host.script(&made)).saved);
        let read = host.script("cat absolute up root top/etc/shadow loop; echo y > two; cat one");
        assert_eq!(read.stdout, "x\n", "something was read");
        let export = host.export();
        assert_eq!(export["absolute"].target.as_deref(), Some(target.as_str()));
        for link in ["absolute", "up", "root", "top", "loop"] {
            assert_eq!(export[link].kind, tar::EntryType::Symlink, "{link}");
        }
        // A hard link is another file the next time.
        assert_eq!(
            (&export["one"].content[..], &export["two"].content[..]),
            (&b"x\n"[..], &b"y\n"[..])
        );
        assert_eq!(std::fs::read(secret.path()).unwrap(), b"the secret of the host");
    });
}

#[test]
fn pipes_sockets_and_devices_are_left_out_and_no_right_is_kept() {
    with_workspaces("pipes_sockets_and_devices_are_left_out_and_no_right_is_kept", |host| {
        let code = "import os, socket, stat\nos.mkfifo('pipe')\n\
                    s = socket.socket(socket.AF_UNIX); s.bind('socket')\n\
                    open('tool', 'w').write('x'); os.chmod('tool', 0o6755)\n\
                    os.mkdir('dir'); os.chmod('dir', 0o3777)\n\
                    try:\n    os.mknod('device', stat.S_IFCHR | 0o666, os.makedev(1, 5))\n    print('made')\n\
                    except OSError: print('refused')\n";
        let report = host.run(python(code).workspace("w"));
        assert_eq!(report.stdout, "refused\n", "{}", report.stderr);
        let left_out: Vec<&str> =
            of(&report).left_out.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(left_out, ["pipe", "socket"]);
        let export = host.export();
        assert_eq!(host.names(), ["dir", "tool"]);
        assert_eq!((export["tool"].mode, export["dir"].mode), (0o755, 0o777));
        assert_eq!(host.output("stat -c %a tool dir"), "755\n777\n");
    });
}

#[test]
fn what_cannot_be_kept_whole_is_not_kept_at_all() {
    with_workspaces("what_cannot_be_kept_whole_is_not_kept_at_all", |host| {
        host.output("echo before > file");
        for (script, reason) in [
            ("truncate -s 60M huge", "more than 4M"),
            ("head -c 3M /dev/zero > one; ln one two", "more than 4M"),
            ("d=.; for i in $(seq 100); do mkdir d; cd d; done", "too deep"),
            (
                "n=$(printf 'n%.0s' $(seq 200)); for i in $(seq 12); do mkdir $n; cd $n; done",
                "too long",
            ),
        ] {
            let report = host.script(&format!("{script}; echo after > /work/file"));
            assert_eq!(report.status, Status::OutputLimit, "{script}");
            let workspace = of(&report);
            assert!(!workspace.saved, "{script}");
            assert!(workspace.reason.as_deref().unwrap().contains(reason), "{workspace:?}");
            assert!(report.error.as_deref().unwrap().contains(reason), "{:?}", report.error);
            assert_eq!((workspace.size.bytes, workspace.size.files), (7, 1));
            assert_eq!(host.export()["file"].content, b"before\n");
        }
    });
}

#[test]
fn odd_names_and_forbidden_files_are_kept() {
    with_workspaces("odd_names_and_forbidden_files_are_kept", |host| {
        let code = "import os\nopen(b'new\\nline', 'w').write('1')\nopen(b'\\xff\\xfe', 'w').write('2')\n\
                    os.mkdir('closed'); open('closed/file', 'w').write('3')\n\
                    os.chmod('closed/file', 0); os.chmod('closed', 0)\n";
        let report = host.run(python(code).workspace("w"));
        assert!(of(&report).saved, "{:?}", of(&report));
        let look = "import os\nprint(sorted(os.listdir(b'.')))\nprint(oct(os.stat('closed').st_mode))\n\
                    os.chmod('closed', 0o700)\nprint(oct(os.stat('closed/file').st_mode))\n\
                    os.chmod('closed/file', 0o600); print(open('closed/file').read())";
        let report = host.run(python(look).workspace("w"));
        let expected =
            "[b'closed', b'main.py', b'new\\nline', b'\\xff\\xfe']\n0o40000\n0o100000\n3\n";
        assert_eq!(report.stdout, expected, "{}", report.stderr);
    });
}

#[test]
fn what_is_left_running_changes_nothing_that_is_kept() {
    with_workspaces("what_is_left_running_changes_nothing_that_is_kept", |host| {
        let script = "(while :; do printf 'a%.0s' $(seq 100) > f.tmp; mv f.tmp f; \
                      rm -rf d; mkdir -p d/e/f; ln -sf /etc l; done) & \
                      while ! [ -e f ] || ! [ -e l ]; do :; done; echo done > done";
        for _ in 0..5 {
            let report = host.script(script);
            assert!(of(&report).saved, "{:?}", of(&report));
            let export = host.export();
            assert_eq!(export["done"].content, b"done\n");
            assert_eq!(export["f"].content, b"a".repeat(100));
        }
    });
}

#[test]
fn a_removed_workspace_is_empty_when_it_is_used_again() {
    with_workspaces("a_removed_workspace_is_empty_when_it_is_used_again", |host| {
        host.output("echo x > file");
        let name = "w".parse().unwrap();
        assert_eq!(host.workspaces.find(&name).unwrap().size.files, 1);
        host.workspaces.remove(&name).unwrap();
        assert!(host.workspaces.list().unwrap().is_empty());
        assert_eq!(host.output("ls"), "main.sh\n");
    });
}
