//! The first execution poisons what the second one uses: everything that can be written to is written
//! to, and the second execution finds the world as it was.
//!
//! The same few lines in each language start a script. What differs between languages is what they see:
//! toolchains, layers, caches, and the stages in which a program can act.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::store::Store;
use sandbox::{Isolation, Limits, Report, Request, RequestBuilder, Sandbox, Status};
use sandbox_tests::backend::{execute, with_each_backend_if_asked};

use crate::attack::{assert_greets, take_turn};

const POISON: &str = include_str!("poison/poison.sh");
const WITNESS: &str = include_str!("poison/witness.sh");

/// The places that an execution may write to, all of them its own.
const OWN: &[&str] = &["/work", "/tmp", "/dev/shm", "/dev/mqueue", "/var/tmp"];

/// A program of the language that runs `script.sh` while it runs.
fn when_run(language: &str, script: &str) -> RequestBuilder {
    let code = match language {
        "c" => "#include <stdlib.h>\nint main(void) { return system(\"sh script.sh\") != 0; }",
        "cpp" => {
            "#include <cstdlib>\n#include <iostream>\n\
             int main() { std::cout << std::flush; return std::system(\"sh script.sh\") != 0; }"
        }
        "go" => {
            "package main\nimport (\"os\"; \"os/exec\")\nfunc main() {\n\
             command := exec.Command(\"sh\", \"script.sh\")\ncommand.Stdout = os.Stdout\n\
             if command.Run() != nil { os.Exit(1) }\n}"
        }
        "rust" => {
            "fn main() {\nlet done = std::process::Command::new(\"sh\").arg(\"script.sh\").status();\n\
             assert!(done.unwrap().success());\n}"
        }
        "java" => {
            "public class Main { public static void main(String[] a) throws Exception {\n\
             var script = new ProcessBuilder(\"sh\", \"script.sh\").inheritIO().start();\n\
             System.exit(script.waitFor()); } }"
        }
        "python" => "import json, subprocess\nsubprocess.run(['sh', 'script.sh'], check=True)",
        "javascript" => {
            "const { execSync } = require('child_process');\n\
             execSync('sh script.sh', { stdio: 'inherit' });"
        }
        "typescript" => {
            "import { execSync } from 'child_process';\n\
             execSync('sh script.sh', { stdio: 'inherit' });"
        }
        language => panic!("there is no program in {language}"),
    };
    Request::builder(language).code(code).file("script.sh", script)
}

/// A Cargo project that runs `script.sh` while it is compiled, and prints later what that said. What has
/// spoilt its own build says so at once.
fn when_built(script: &str) -> RequestBuilder {
    let build = "fn main() {\n\
                 let said = std::process::Command::new(\"sh\").arg(\"script.sh\").output().unwrap();\n\
                 let said = String::from_utf8(said.stdout).unwrap();\n\
                 if said.contains(\"wrote \") { panic!(\"{said}\"); }\n\
                 std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/said\", said).unwrap();\n}";
    let main = "fn main() { print!(\"{}\", include_str!(concat!(env!(\"OUT_DIR\"), \"/said\"))); }";
    Request::builder("rust")
        .file("src/main.rs", main)
        .file("build.rs", build)
        .file(
            "Cargo.toml",
            "[package]\nname = \"built\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        )
        .file("script.sh", script)
}

fn run(sandbox: &Sandbox, request: RequestBuilder) -> Option<Report> {
    let limits = Limits::run().with_wall_time(Duration::from_mins(1)).unwrap();
    execute("poison", sandbox, request.limits(limits))
}

/// Every file of the layers that are there, as far as the kernel tells a change of it: the last of these
/// numbers nobody can set.
fn layers() -> BTreeMap<PathBuf, (u64, i64, i64, i64)> {
    fn look(directory: &Path, found: &mut BTreeMap<PathBuf, (u64, i64, i64, i64)>) {
        // Another program may be clearing its own.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(data) = entry.path().symlink_metadata() else { continue };
            let changed = (data.ctime(), data.ctime_nsec());
            found.insert(entry.path(), (data.len(), data.mtime(), changed.0, changed.1));
            if data.is_dir() {
                look(&entry.path(), found);
            }
        }
    }
    let mut found = BTreeMap::new();
    look(&Store::open().unwrap().path().join("layers"), &mut found);
    found
}

/// What the poison says that it could write to.
fn written(report: &Report) -> Vec<&Path> {
    let lines = report.output.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix("wrote ").or_else(|| line.strip_prefix("changed ")))
        .map(Path::new)
        .collect()
}

/// What the witness saw. An Engine gives each container a user of its own, and the files that name it differ.
fn seen(report: &Report) -> Vec<&str> {
    let names_user = |line: &&str| line.ends_with(" /etc/passwd") || line.ends_with(" /etc/group");
    let is_engine = report.isolation == Isolation::Docker;
    report.stdout.lines().filter(|line| !(is_engine && names_user(line))).collect()
}

/// Poisons, and shows that the witness tells the same as before and that nothing outside of the
/// execution's own places was written.
fn check(language: &str, program: impl Fn(&str) -> RequestBuilder) {
    let _turn = take_turn();
    with_each_backend_if_asked(|sandbox| {
        let Some(before) = run(sandbox, program(WITNESS)) else { return };
        assert_eq!(before.status, Status::Completed, "{}", before.stderr);
        let layers_before = layers();
        let poisoned = run(sandbox, program(POISON)).unwrap();
        let written = written(&poisoned);
        assert!(written.contains(&Path::new("/tmp")), "the poison has no effect at all");
        // Messages tell the work directory's own files without it.
        let is_own =
            |path: &&&Path| path.is_relative() || OWN.iter().any(|place| path.starts_with(place));
        let foreign: Vec<_> = written.iter().filter(|path| !is_own(path)).collect();
        assert!(foreign.is_empty(), "written: {foreign:#?}");
        let after = run(sandbox, program(WITNESS)).unwrap();
        assert_eq!(seen(&after), seen(&before), "the second execution sees the first");
        assert_greets(sandbox, language);
        let layers_after = layers();
        let changed = layers_before
            .iter()
            .find(|(path, data)| layers_after.get(*path).is_some_and(|now| now != *data));
        assert_eq!(changed, None, "a layer has changed");
    });
}

/// Rows: a test for each language.
macro_rules! poisons {
    ($($name:ident: $language:expr;)+) => {$(
        #[test]
        fn $name() {
            check($language, |script| when_run($language, script));
        }
    )+};
}

poisons! {
    a_c_program_changes_nothing_for_the_next: "c";
    a_cpp_program_changes_nothing_for_the_next: "cpp";
    a_go_program_changes_nothing_for_the_next: "go";
    a_rust_program_changes_nothing_for_the_next: "rust";
    a_java_program_changes_nothing_for_the_next: "java";
    a_python_program_changes_nothing_for_the_next: "python";
    a_javascript_program_changes_nothing_for_the_next: "javascript";
    a_typescript_program_changes_nothing_for_the_next: "typescript";
}

#[test]
fn a_build_script_changes_nothing_for_the_next() {
    check("rust", when_built);
}

/// The compiler itself writes into its cache, which lies over the prepared one.
#[test]
fn what_the_go_command_adds_to_its_cache_is_gone_with_the_execution() {
    let _turn = take_turn();
    with_each_backend_if_asked(|sandbox| {
        let project = |constant: &str| {
            Request::builder("go")
                .file(
                    "main.go",
                    "package main\nimport \"victim/part\"\nfunc main() { print(part.Text()) }",
                )
                .file(
                    "part/part.go",
                    format!("package part\nfunc Text() string {{ return {constant:?} }}"),
                )
                .file("go.mod", "module victim\n\ngo 1.21\n")
        };
        let Some(_) = run(sandbox, project("prepares the layer")) else { return };
        let before = layers();
        for text in ["first", "other"] {
            let report = run(sandbox, project(text)).unwrap();
            assert_eq!((report.status, report.stderr.as_str()), (Status::Completed, text));
        }
        let after = layers();
        let changed = before.iter().find(|(path, data)| after.get(*path) != Some(*data));
        assert_eq!(changed, None, "a layer has changed");
    });
}
