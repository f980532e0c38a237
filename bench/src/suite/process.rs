//! Programs outside our sandbox: started, listened to until they are silent, and waited for.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::cases::Run;

/// What every program outside our sandbox gets, as those inside do.
pub(super) const SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A command, as a list of words.
pub(super) type Words = Vec<String>;

pub(super) fn words<Word: AsRef<str>>(list: impl IntoIterator<Item = Word>) -> Words {
    list.into_iter().map(|word| word.as_ref().to_owned()).collect()
}

/// Runs the commands one after the other, and measures from the first start to the last end, and to the
/// first byte that the last one prints. Makes sure that it printed what it should: a failure is quick and
/// would look good.
pub(super) fn run(commands: &[Words], directory: &Path, expected: &[u8]) -> anyhow::Result<Run> {
    let begun = Instant::now();
    let mut printed = Vec::new();
    let mut first_output = None;
    for words in commands {
        printed.clear();
        first_output = None;
        let mut child = command(words, directory)
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
    ensure!(printed == expected, "{commands:?} printed {:?}", String::from_utf8_lossy(&printed));
    Ok(Run { total, first_output, stages: None })
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

    #[test]
    fn the_last_command_is_the_one_that_prints() {
        let commands = [words(["/bin/echo", "one"]), words(["/bin/echo", "two"])];
        let run = run(&commands, Path::new("/"), b"two\n").expect("both work");
        assert!(run.first_output.expect("it printed") <= run.total);
    }

    #[test]
    fn what_fails_or_prints_something_else_is_no_run() {
        assert!(run(&[words(["/bin/false"])], Path::new("/"), b"").is_err());
        assert!(run(&[words(["/bin/echo", "one"])], Path::new("/"), b"two\n").is_err());
        let error = must_work(&words(["/bin/ls", "/nowhere"]), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("/nowhere"));
    }
}
