use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;

/// Longer than any command here takes on a busy machine: a test that reaches it has hung.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_sandbox-run");

/// The result of one command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// The report, from `--json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the command was refused with one line that contains all of these.
    pub(crate) fn is_refused_with(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("sandbox-run: "), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:?}");
        }
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the command with empty standard input.
pub(crate) fn call(args: &[&str]) -> CommandOutput {
    call_with_stdin(args, "")
}

/// Runs the command with a longer timeout, because preparing a toolchain may take minutes.
pub(crate) fn call_with_long_timeout(args: &[&str]) -> CommandOutput {
    let output = Command::new(BINARY).args(args).write_stdin("").timeout(10 * TIMEOUT).output();
    output.unwrap().into()
}

/// Runs the command with this on standard input.
pub(crate) fn call_with_stdin(args: &[&str], stdin: &str) -> CommandOutput {
    let mut command = Command::new(BINARY);
    let output = command.args(args).write_stdin(stdin).timeout(TIMEOUT).output();
    output.unwrap().into()
}

/// Runs the command with its store in this directory.
pub(crate) fn call_with_store(store: &Path, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_STORE", store).env_remove("SANDBOX_RUN_CACHE_SIZE");
    command.args(args).timeout(TIMEOUT).output().unwrap().into()
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process and all its descendants.
pub(crate) fn family(process: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([process]);
    loop {
        let children: Vec<u32> = processes()
            .filter(|(child, parent)| family.contains(parent) && !family.contains(child))
            .map(|(child, _)| child)
            .collect();
        if children.is_empty() {
            return family;
        }
        family.extend(children);
    }
}

/// All processes with their parents, zombies excluded.
fn processes() -> impl Iterator<Item = (u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        (fields.next()? != "Z").then_some(())?;
        Some((process, fields.next()?.parse().ok()?))
    })
}

/// Waits until no process of a family is left, and no cgroup that one of them created.
pub(crate) fn wait_until_gone(family: &BTreeSet<u32>) {
    wait_until("the processes to exit", || {
        !processes().any(|(process, _)| family.contains(&process))
    });
    let groups = || {
        let controllers = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
        let groups = controllers.flatten().flat_map(|controller| {
            let below = fs::read_dir(controller.path()).into_iter().flatten();
            below
                .flatten()
                .map(|group| group.file_name())
                .chain([controller.file_name()])
                .collect::<Vec<_>>()
        });
        groups.map(|name| name.to_string_lossy().into_owned())
    };
    let prefixes: Vec<String> =
        family.iter().map(|process| format!("sandbox-run.{process}.")).collect();
    wait_until("the cgroups to go", || {
        !groups().any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
    });
}

/// Reports that a test cannot run on this host.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
#[expect(clippy::disallowed_methods, reason = "the environment says whether tests may be skipped")]
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("SANDBOX_RUN_NO_SKIPPED_TESTS").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}
