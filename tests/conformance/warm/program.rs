//! A program that must behave the same warm and cold, and the comparison.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use sandbox::{Report, Request, RequestBuilder, Sandbox, Status};
use sandbox_tests::skip::skip;
use sandbox_tests::warm::{StartMethod, execute, execute_warm, prime};
use serde::Deserialize;

/// A program with its input. The first file is the entry point.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) files: Vec<(String, Vec<u8>)>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) stdin: Vec<u8>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(skip)]
    pub(super) workdir: Option<String>,
    /// Whether its traces are the same from one cold run to the next.
    #[serde(default = "yes")]
    pub(super) same_stderr: bool,
}

fn yes() -> bool {
    true
}

impl Program {
    /// A program of one file.
    pub(super) fn new(name: &str, entry: &str, code: &str) -> Self {
        let files = vec![(entry.to_owned(), code.as_bytes().to_vec())];
        Self { name: name.to_owned(), files, same_stderr: true, ..Self::default() }
    }

    pub(super) fn args(mut self, args: &[&str]) -> Self {
        self.args = args.iter().map(ToString::to_string).collect();
        self
    }

    pub(super) fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.as_bytes().to_vec()));
        self
    }

    pub(super) fn workdir(mut self, directory: &str) -> Self {
        self.workdir = Some(directory.to_owned());
        self
    }

    fn request(&self, language: &str) -> RequestBuilder {
        let mut request = Request::builder(language)
            .args(self.args.clone())
            .stdin(self.stdin.clone())
            .collect("**");
        for (path, contents) in &self.files {
            request = request.file(path, contents.clone());
        }
        for (name, value) in &self.env {
            request = request.env(name, value);
        }
        match &self.workdir {
            Some(directory) => request.workdir(directory),
            None => request,
        }
    }
}

/// The cases that the driver in `tests/warm` tries outside.
pub(super) fn cases_of_driver(language: &str) -> Vec<Program> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("warm/cases.py");
    let said = Command::new("python3").arg("-B").arg(script).arg(language).output();
    let said = said.expect("Python can be started");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let mut programs: Vec<Program> =
        serde_json::from_slice(&said.stdout).expect("the cases are JSON");
    // An empty program is no request.
    programs.retain(|program| !program.files[0].1.is_empty());
    programs
}

/// All that an execution shows.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    status: Status,
    exit_code: i32,
    signal: Option<String>,
    stdout: String,
    stderr: String,
    bytes: (Option<String>, Option<String>),
    compiler: Vec<String>,
    files: Vec<(String, String)>,
    violations: String,
}

impl Shown {
    fn of(report: Report, program: &Program) -> Self {
        let compiler = report.stages.iter().map(|stage| stage.output.clone()).collect();
        let files = report.output_files.into_iter().map(|file| (file.path, file.content));
        let stderr = if program.same_stderr { masked(&report.stderr) } else { String::new() };
        Self {
            status: report.status,
            exit_code: report.exit_code,
            signal: report.signal,
            stdout: masked(&report.stdout),
            stderr,
            bytes: (report.stdout_base64, report.stderr_base64),
            compiler,
            files: files.collect(),
            violations: format!("{:?}", report.violations),
        }
    }
}

/// Addresses differ from run to run.
fn masked(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        let kept = if part.len() - rest.len() >= 6 { rest } else { part };
        masked.push_str("0x");
        masked.push_str(kept);
    }
    masked
}

/// Runs each program cold and warm, and fails with all that differ.
pub(super) fn compare(language: &str, ways: &[StartMethod], programs: &[Program]) {
    let cold = Sandbox::builder()
        .without_compile_cache()
        .warm(false)
        .build()
        .expect("a sandbox can be started");
    let first = programs[0].request(language).build().expect("the request is a valid one");
    if let Err(error) = cold.requirements(&first) {
        return skip(&format!("warm {language}"), &sandbox::with_causes(&error));
    }
    let expected: Vec<Shown> = programs
        .iter()
        .map(|program| Shown::of(execute(&cold, program.request(language)), program))
        .collect();
    drop(cold);
    // What makes runtimes wait for the others has to get as far as being run.
    let runs = expected.iter().position(|shown| shown.status == Status::Completed);
    let first = &programs[runs.expect("one of them completes")];
    let mut differences = Vec::new();
    for method in ways {
        let sandbox = method.only().without_compile_cache().build();
        let sandbox = sandbox.expect("a sandbox can be started");
        prime(&sandbox, || first.request(language));
        for (program, expected) in programs.iter().zip(&expected) {
            let shown = Shown::of(execute_warm(&sandbox, program.request(language)), program);
            if shown != *expected {
                let name = &program.name;
                differences.push(format!("{name}, {method:?}\n{}", difference(expected, &shown)));
            }
        }
    }
    let (count, tried) = (differences.len(), programs.len() * ways.len());
    assert!(count == 0, "{count} of {tried} differ:\n{}", differences.join("\n"));
}

/// The lines that only one of both has.
fn difference(cold: &Shown, warm: &Shown) -> String {
    let (cold, warm) = (format!("{cold:#?}"), format!("{warm:#?}"));
    let lines = |text: &str| text.replace("\\n", "\n    ").lines().map(str::to_owned).collect();
    let (cold, warm): (Vec<String>, Vec<String>) = (lines(&cold), lines(&warm));
    let missing =
        cold.iter().filter(|line| !warm.contains(line)).map(|line| format!("  cold {line}"));
    let new = warm.iter().filter(|line| !cold.contains(line)).map(|line| format!("  warm {line}"));
    missing.chain(new).collect::<Vec<_>>().join("\n")
}
