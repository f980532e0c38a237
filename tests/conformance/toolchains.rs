//! Toolchains that are not the system's own, and what is made once for a toolchain.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandbox::{Report, Request, Sandbox, Status};
use sandbox_tests::backend::show;
use sandbox_tests::user::as_ordinary_user;
use tempfile::TempDir;

/// A home that only its owner may enter, with a toolchain and a secret in it, and a recipe for the
/// toolchain. The interpreter is a script that runs its argument with the shell.
struct Home(TempDir);

const RECIPE: &str = r#"
name = "toy"
extensions = ["toy"]
entry = "main.toy"
[toolchain]
programs = ["HOME/.toys/versions/*/bin/toy"]
version = { args = ["--version"] }
[layers.shared]
about = "something shared"
command = ["/bin/sh", "-c", "mkdir -p layer/sub; echo original > layer/sub/file; date +%N > layer/made"]
stages = ["run"]
[layers.covered]
about = "something that is written over"
command = ["/bin/sh", "-c", "mkdir -p layer/sub; echo original > layer/sub/file"]
stages = ["run"]
writable = true
[run]
command = ["{program}", "{entry}"]
[run.environment]
SHARED = "{layer:shared}"
COVERED = "{layer:covered}"
[hello]
code = ""
expected = ""
"#;

impl Home {
    fn new(mode: u32) -> Self {
        let home = tempfile::tempdir().unwrap();
        for version in ["1.9.3", "1.10.2"] {
            let root = home.path().join(".toys/versions").join(version);
            std::fs::create_dir_all(root.join("bin")).unwrap();
            std::fs::create_dir_all(root.join("lib")).unwrap();
            let script = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo VERSION\nexec sh \"$@\"\n";
            let toy = root.join("bin/toy");
            std::fs::write(&toy, script.replace("VERSION", version)).unwrap();
            std::fs::write(root.join("lib/data"), version).unwrap();
            let data = root.join("lib/data");
            std::fs::set_permissions(data, PermissionsExt::from_mode(mode)).unwrap();
            let entered = if mode & 0o004 == 0 { 0o700 } else { 0o755 };
            for path in [toy, root.join("bin"), root.join("lib"), root] {
                std::fs::set_permissions(path, PermissionsExt::from_mode(entered)).unwrap();
            }
        }
        std::fs::write(home.path().join(".toys/secret"), "secret").unwrap();
        let recipe = home.path().join("recipes/toy");
        std::fs::create_dir_all(&recipe).unwrap();
        let text = RECIPE.replace("HOME", home.path().to_str().unwrap());
        std::fs::write(recipe.join("runtime.toml"), text).unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn sandbox(&self) -> Sandbox {
        let builder = Sandbox::builder().runtimes_directory(self.path().join("recipes"));
        builder.store_directory(self.path().join("store")).build().unwrap()
    }
}

fn run(sandbox: &Sandbox, language: &str, code: &str) -> Report {
    let request = Request::builder(language).code(code).build().unwrap();
    let report = sandbox.execute(request).unwrap();
    show(&report);
    assert_eq!(report.status, Status::Completed);
    report
}

/// The toolchain works, is read-only, and nothing else of its home is there.
fn check_private_toolchain(mode: u32) {
    let home = Home::new(mode);
    let sandbox = home.sandbox();
    let toys = home.path().join(".toys");
    let code = "id -u; cat TOYS/versions/1.10.2/lib/data; ls -A TOYS TOYS/versions; \
                echo x > TOYS/versions/1.10.2/lib/data || echo read-only; cat TOYS/secret || echo none";
    let code = code.replace("TOYS", toys.to_str().unwrap());
    let report = run(&sandbox, "toy", &format!("exec 2>/dev/null; {code}"));
    let listing = format!("{0}:\nversions\n\n{0}/versions:\n1.10.2\n", toys.display());
    assert_eq!(report.stdout, format!("1000\n1.10.2{listing}read-only\nnone\n"));
    assert_eq!(report.version, "1.10.2", "the newest is the default");
    let report = run(&sandbox, "toy@1.9", "exit 0");
    assert_eq!(report.version, "1.9.3", "the other one can be asked for");
}

#[test]
fn a_toolchain_in_a_home_that_others_cannot_enter_works() {
    check_private_toolchain(0o644);
}

#[test]
fn a_toolchain_that_only_its_owner_may_read_works() {
    check_private_toolchain(0o600);
}

#[test]
fn an_ordinary_user_uses_a_private_toolchain() {
    as_ordinary_user("toolchains::an_ordinary_user_uses_a_private_toolchain", || {
        check_private_toolchain(0o600);
        check_layers();
    });
}

/// What one execution writes, no other one sees, and what is made once is made once.
fn check_layers() {
    let home = Home::new(0o644);
    let made = run(&home.sandbox(), "toy", "cat $SHARED/made").stdout;
    let spoil = "exec 2>/dev/null
        for place in $SHARED $COVERED; do
            echo spoilt > $place/sub/file; rm $place/sub/file; echo new > $place/new; mkdir $place/d
            chmod 777 $place/sub; ls $place; ls $place/sub
        done";
    let spoilt = run(&home.sandbox(), "toy", spoil);
    assert_eq!(spoilt.stdout, "made\nsub\nfile\nd\nnew\nsub\n", "what each could do");
    let look = "cat $SHARED/sub/file $COVERED/sub/file; ls $SHARED $COVERED | grep -c new; \
                cat $SHARED/made";
    let after = run(&home.sandbox(), "toy", look);
    assert_eq!(after.stdout, format!("original\noriginal\n0\n{made}"));
}

#[test]
fn an_execution_cannot_change_what_is_made_once_for_all() {
    check_layers();
}

#[test]
fn what_is_written_over_a_layer_counts_against_the_disk_limit() {
    let home = Home::new(0o644);
    let code = "head -c 100M /dev/zero > $COVERED/big; wc -c < $COVERED/big; df -k /tmp | tail -1";
    let report = run(&home.sandbox(), "toy", code);
    let written: u64 = report.stdout.lines().next().unwrap().trim().parse().unwrap();
    assert!(written <= 64 * 1024 * 1024, "{written} bytes were written");
    assert!(report.stderr.contains("No space left"), "{}", report.stderr);
}

#[test]
fn a_layer_that_cannot_be_made_is_our_failure_and_explains_itself() {
    let home = Home::new(0o644);
    let recipe = home.path().join("recipes/toy/runtime.toml");
    let text = std::fs::read_to_string(&recipe).unwrap();
    let text = text.replace("date +%N > layer/made", "echo no such library; exit 3");
    std::fs::write(&recipe, text).unwrap();
    let request = Request::builder("toy").code("true").build().unwrap();
    let report = home.sandbox().execute(request).unwrap();
    show(&report);
    assert_eq!(report.status, Status::Error);
    let error = report.error.unwrap();
    assert!(error.contains("something shared") && error.contains("no such library"), "{error}");
    assert!(error.contains("code 3"), "{error}");
}
