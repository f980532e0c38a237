//! The corpus: small programs of every kind, each of which must do inside exactly what it does outside.
//! A case is a folder `tests/corpus/<language>/<name>` with the program and a `case.toml`. What is
//! expected was proven without a sandbox, by `tests/corpus/check-bare`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sandbox::{ByteSize, Limits, NetworkPolicy, Report, RequestBuilder, Sandbox, Stage, Status};
use sandbox_tests::backend::with_native_and_another;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::program::{execute, files_below, folder, project};

include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

/// What `case.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    #[serde(rename = "about")]
    _about: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    stdin_file: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    network: Option<String>,
    #[serde(default)]
    limits: CaseLimits,
    pub(crate) expect: Expected,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseLimits {
    timeout: Option<String>,
    memory: Option<String>,
    pids: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    status: Status,
    exit_code: i32,
    signal: Option<String>,
    stdout: Option<String>,
    stdout_file: Option<String>,
    stdout_sha256: Option<String>,
    #[serde(default)]
    stderr_contains: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

fn case(language: &str, name: &str) {
    let (case, files) = read(language, name);
    with_native_and_another(&format!("{language}/{name}"), 6, |sandbox| {
        let report = execute(sandbox, case.request(sandbox, language, files.clone()));
        case.expect.check(&report);
    });
}

/// A case, and the files of its program.
pub(crate) fn read(language: &str, name: &str) -> (Case, Vec<(String, Vec<u8>)>) {
    let mut files = files_below(&folder("corpus").join(language).join(name));
    let mut take = |name: &str| {
        let position = files.iter().position(|(path, _)| path == name);
        let position = position.unwrap_or_else(|| panic!("the case has no file {name}"));
        String::from_utf8(files.remove(position).1).expect("a text")
    };
    let mut case: Case = toml::from_str(&take("case.toml")).unwrap();
    if let Some(file) = &case.stdin_file {
        case.stdin = take(file);
    }
    if let Some(file) = &case.expect.stdout_file {
        case.expect.stdout = Some(take(file));
    }
    (case, files)
}

impl Case {
    pub(crate) fn request(
        &self,
        sandbox: &Sandbox,
        language: &str,
        files: Vec<(String, Vec<u8>)>,
    ) -> RequestBuilder {
        let mut request = project(sandbox, language, files)
            .args(self.args.clone())
            .stdin(self.stdin.clone().into_bytes())
            .limits(self.limits.of_the_run_stage());
        if let Some(network) = &self.network {
            request = request.network(network.parse::<NetworkPolicy>().unwrap());
        }
        for (name, value) in &self.env {
            request = request.env(name, value);
        }
        for path in self.expect.files.keys() {
            request = request.collect(path);
        }
        request
    }
}

impl CaseLimits {
    fn of_the_run_stage(&self) -> Limits {
        let mut limits = Limits::run();
        if let Some(timeout) = &self.timeout {
            limits = limits.with_wall_time(sandbox::parse_duration(timeout).unwrap()).unwrap();
        }
        if let Some(memory) = &self.memory {
            limits = limits.with_memory(memory.parse::<ByteSize>().unwrap()).unwrap();
        }
        if let Some(pids) = self.pids {
            limits = limits.with_pids(pids).unwrap();
        }
        limits
    }
}

impl Expected {
    pub(crate) fn check(&self, report: &Report) {
        assert_eq!(report.status, self.status, "{:?}\n{}", report.error, report.stderr);
        assert_eq!(report.stage, Stage::Run);
        assert_eq!(report.exit_code, self.exit_code);
        assert_eq!(report.signal, self.signal);
        let said = [&self.stdout, &self.stdout_sha256];
        assert_eq!(said.into_iter().flatten().count(), 1, "a case says once what is printed");
        if let Some(stdout) = &self.stdout {
            assert_eq!(&report.stdout, stdout);
        }
        if let Some(expected) = &self.stdout_sha256 {
            let mut digest = String::new();
            for byte in Sha256::digest(&report.stdout) {
                write!(digest, "{byte:02x}").expect("text takes text");
            }
            assert_eq!(&digest, expected, "{} bytes", report.stdout.len());
        }
        for words in &self.stderr_contains {
            assert!(report.stderr.contains(words), "'{words}' is not in {}", report.stderr);
        }
        let found: BTreeMap<_, _> = report
            .output_files
            .iter()
            .map(|file| (file.path.clone(), file.content.clone()))
            .collect();
        assert_eq!(found, self.files);
    }
}
