//! Clients that people use.

use std::path::Path;
use std::process::Command;

use sandbox::{ByteSize, Decision, Limits, Report, Request, Sandbox, Status};
use sandbox_tests::world::{SITE, Who, in_a_world};

use crate::servers::Files;
use crate::{allow, execute, has_record};

fn bash(code: &str, files: &Path) -> Report {
    let _server = Files::of(files, SITE, 8080);
    let limits = Limits::run().with_memory(ByteSize::mib(512)).unwrap();
    let limits = limits.with_wall_time(std::time::Duration::from_mins(1)).unwrap();
    let request =
        Request::builder("bash").code(code).limits(limits).allow(allow(&["site.example:8080"]));
    let report = execute(&Sandbox::new().unwrap(), request);
    assert_eq!(report.status, Status::Completed, "{}", report.stderr);
    assert!(has_record(&report, "site.example", 8080, Decision::Allowed));
    report
}

#[test]
fn curl_fetches_a_file() {
    in_a_world("clients::curl_fetches_a_file", Who::Root, || {
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("file"), "content").unwrap();
        let report = bash(
            "/usr/bin/curl --silent --show-error --fail http://site.example:8080/file",
            files.path(),
        );
        assert_eq!(report.stdout, "content");
    });
}

#[test]
fn git_clones_over_http() {
    in_a_world("clients::git_clones_over_http", Who::Root, || {
        let files = tempfile::tempdir().unwrap();
        let script = "set -e; cd \"$1\"; export HOME=\"$1\" GIT_CONFIG_NOSYSTEM=1; \
            /usr/bin/git init -q work; cd work; echo inside >file; /usr/bin/git add file; \
            /usr/bin/git -c user.name=a -c user.email=a@example.org commit -qm first; \
            /usr/bin/git clone -q --bare . ../repository.git; cd ../repository.git; /usr/bin/git update-server-info";
        let made = Command::new("sh").args(["-c", script, "sh"]).arg(files.path()).status();
        assert!(made.unwrap().success());
        let code =
            "/usr/bin/git clone -q http://site.example:8080/repository.git clone && cat clone/file";
        assert_eq!(bash(code, files.path()).stdout, "inside\n");
    });
}

#[test]
fn pip_installs_from_an_index() {
    in_a_world("clients::pip_installs_from_an_index", Who::Root, || {
        let files = tempfile::tempdir().unwrap();
        let script = "import sys, zipfile\n\
            with zipfile.ZipFile(sys.argv[1], 'w') as wheel:\n\
            \x20   wheel.writestr('toy.py', 'answer = 42\\n')\n\
            \x20   wheel.writestr('toy-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: toy\\nVersion: 1.0\\n')\n\
            \x20   wheel.writestr('toy-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
            \x20   wheel.writestr('toy-1.0.dist-info/RECORD', '')\n";
        let index = files.path().join("simple/toy");
        std::fs::create_dir_all(&index).unwrap();
        let wheel = index.join("toy-1.0-py3-none-any.whl");
        let made = Command::new("/usr/bin/python3").args(["-c", script]).arg(&wheel).status();
        assert!(made.unwrap().success());
        let code = "export PIP_DISABLE_PIP_VERSION_CHECK=1; \
            /usr/bin/python3 -m pip install --quiet --target there --trusted-host site.example \
            --index-url http://site.example:8080/simple toy && PYTHONPATH=there /usr/bin/python3 -c 'import toy; print(toy.answer)'";
        assert_eq!(bash(code, files.path()).stdout, "42\n");
    });
}
