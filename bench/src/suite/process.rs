//! Programs outside our sandbox: started, listened to until they are silent, and waited for.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::cases::Run;

/// What every program outside our sandbox gets, as those inside do.
pub(super) const SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A command, as a list of words.
pub(super) type Words = Vec<String>;

pub(super) fn words<Word: AsRef<str>>(list: impl IntoIterator<Item = Word>) -> Words {
    list.into_iter().map(|word| word.as_ref().to_owned()).collect()
}

/// Commands outside our sandbox, one after the other.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) commands: Vec<Words>,
    pub(super) directory: PathBuf,
    /// What the last one prints.
    pub(super) expected: Cow<'static, str>,
}

impl Process {
    /// Runs the commands, and measures from the first start to the last end, and to the first byte that the last
    /// one prints. Makes sure that it printed what it should: a failure is quick and would look good.
    pub(super) fn run(&self) -> anyhow::Result<Run> {
        let begun = Instant::now();
        let mut printed = Vec::new();
        let mut first_output = None;
        for words in &self.commands {
            printed.clear();
            first_output = None;
            let mut child = command(words, &self.directory)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .with_context(|| format!("start {}", words[0]))?;
            let mut stdout = child.stdout.take().context("it was started with a pipe")?;
            let mut piece = [0; 4096];
            loop {
                let length = stdout.read(&mut piece).context("read what it prints")?;
                if length == 0 {
                    break;
                }
                first_output = first_output.or_else(|| Some(begun.elapsed()));
                printed.extend_from_slice(&piece[..length]);
            }
            let status = child.wait().context("wait for its end")?;
            ensure!(status.success(), "{} ended with {status}", words.join(" "));
        }
        let total = begun.elapsed();
        let printed = String::from_utf8_lossy(&printed);
        ensure!(printed == self.expected, "{:?} printed {printed:?}", self.commands);
        Ok(Run { total, first_output, stages: None })
    }
}

/// Runs a command for what it does; its complaints are in the error.
pub(super) fn must_work(words: &[String], directory: &Path) -> anyhow::Result<String> {
    let output =
        command(words, directory).output().with_context(|| format!("start {}", words[0]))?;
    ensure!(
        output.status.success(),
        "{} ended with {}: {}",
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command(words: &[String], directory: &Path) -> Command {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .current_dir(directory)
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .env("HOME", directory)
        .stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(commands: &[Words], expected: &'static str) -> Process {
        let (commands, expected) = (commands.to_vec(), expected.into());
        Process { commands, directory: "/".into(), expected }
    }

    #[test]
    fn the_last_command_is_the_one_that_prints() {
        let commands = [words(["/bin/echo", "one"]), words(["/bin/echo", "two"])];
        let run = process(&commands, "two\n").run().expect("both work");
        assert!(run.first_output.expect("it printed") <= run.total);
    }

    #[test]
    fn what_fails_or_prints_something_else_is_no_run() {
        assert!(process(&[words(["/bin/false"])], "").run().is_err());
        assert!(process(&[words(["/bin/echo", "one"])], "two\n").run().is_err());
        let error = must_work(&words(["/bin/ls", "/nowhere"]), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("/nowhere"));
    }
}
