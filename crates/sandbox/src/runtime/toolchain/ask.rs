//! Asks a toolchain for its version, or for its real place.
//!
//! This runs programs outside any sandbox: only those that a recipe names, which are the host's own.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::places::SYSTEM_PATH;
use super::shown;
use crate::runtime::recipe::VersionRule;
use crate::runtime::version;

/// The slowest honest toolchain starts a virtual machine on a busy host to print its version.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// More than any version message; the rest of a longer one is not read.
const LONGEST_MESSAGE: u64 = 64 * 1024;

/// The version a program tells.
pub(crate) fn version(
    program: &Path,
    rule: &VersionRule,
    patience: Duration,
) -> Result<String, String> {
    let (message, status) = run(program, &rule.args, Hears::Both, Knows::AsInside, patience)?;
    if !status.success() {
        return Err(format!("asked for its version, it ended with {status}"));
    }
    version_in(&message, rule)
}

/// The version that a message tells.
pub(crate) fn version_in(message: &str, rule: &VersionRule) -> Result<String, String> {
    let version = version::find(message, rule.after.as_deref());
    version.map(ToOwned::to_owned).ok_or_else(|| {
        let first_line = message.lines().next().unwrap_or_default();
        format!(
            "it printed no version: '{}'",
            first_line.chars().take(80).collect::<String>().escape_debug()
        )
    })
}

/// Where a program says that it, or the directory it belongs to, really is.
pub(crate) fn where_it_is(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) = run(program, args, Hears::Stdout, Knows::AsInside, PATIENCE)?;
    if !status.success() {
        return Err(format!("asked where it really is, it ended with {status}"));
    }
    Ok(message.lines().next().unwrap_or_default().trim().to_owned())
}

/// What a program says when it is started as the user would start it, with all of the user's settings.
pub(crate) fn as_set_up(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) = run(program, args, Hears::Stdout, Knows::Everything, PATIENCE)?;
    if !status.success() {
        return Err(format!("asked for its settings, it ended with {status}"));
    }
    Ok(message)
}

/// Which of our variables a program gets to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    /// Those that it will have inside, unless it may be a shim.
    AsInside,
    Everything,
}

/// Which streams are listened to: some tell their version on the one, some on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hears {
    Both,
    Stdout,
}

/// What a program prints, and how it ends.
fn run(
    program: &Path,
    args: &[String],
    hears: Hears,
    knows: Knows,
    patience: Duration,
) -> Result<(String, ExitStatus), String> {
    let deadline = Instant::now() + patience;
    let failed = |error: io::Error| format!("it cannot be started: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(args).current_dir("/").stdin(Stdio::null());
    if knows == Knows::AsInside && shown::leads_there_inside(program) {
        // As it will be inside, so that no variable of ours changes what it says.
        command.env_clear().env("PATH", SYSTEM_PATH.join(":"));
    }
    // Otherwise it may be a shim, which finds what it stands for by the user's own settings.
    command.env("LANG", "C.UTF-8").stdout(writer.try_clone().map_err(failed)?);
    match hears {
        Hears::Both => command.stderr(writer),
        Hears::Stdout => {
            drop(writer);
            command.stderr(Stdio::null())
        }
    };
    let mut child = command.spawn().map_err(failed)?;
    // The command holds our ends of the pipe, and the reader waits until all of them are closed.
    drop(command);

    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut message = Vec::new();
        // A read error leaves a shorter message, which then shows no version.
        let _ = reader.take(LONGEST_MESSAGE).read_to_end(&mut message);
        let _ = sender.send(message);
    });
    let message = receiver.recv_timeout(patience);
    let status = wait_until(&mut child, deadline);
    match (message, status) {
        (Ok(message), Ok(Some(status))) => {
            Ok((String::from_utf8_lossy(&message).into_owned(), status))
        }
        (_, Err(error)) => Err(format!("it cannot be waited for: {error}")),
        _ => Err(format!(
            "asked a question, it did not end within {}",
            sandbox_core::format_duration(patience)
        )),
    }
}

/// Waits for the end, which is near once both streams are closed, and brings it about at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_micros(200));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(args: &[&str]) -> VersionRule {
        VersionRule { args: args.iter().map(ToString::to_string).collect(), after: None }
    }

    fn shell(script: &str, patience: Duration) -> Result<String, String> {
        version(Path::new("/bin/sh"), &rule(&["-c", script]), patience)
    }

    #[test]
    fn a_version_is_read_from_either_stream() {
        let patience = Duration::from_secs(10);
        assert_eq!(shell("echo tool 1.2.3", patience).unwrap(), "1.2.3");
        assert_eq!(shell("echo tool 1.2.4 >&2", patience).unwrap(), "1.2.4");
    }

    #[test]
    fn a_toolchain_that_fails_or_says_nothing_is_told_apart() {
        let patience = Duration::from_secs(10);
        let failed = shell("echo 1.2.3; exit 3", patience).unwrap_err();
        assert!(failed.contains("exit status: 3"), "{failed}");
        let silent = shell("echo nothing here", patience).unwrap_err();
        assert!(silent.contains("'nothing here'"), "{silent}");
    }

    #[test]
    fn a_toolchain_that_hangs_is_ended() {
        let started = Instant::now();
        let hung = shell("exec sleep 1000", Duration::from_millis(100)).unwrap_err();
        assert!(hung.contains("did not end within 100ms"), "{hung}");
        // The same with both streams closed, which is not yet the end of a program.
        let hung = shell("exec sleep 1000 >/dev/null 2>&1", Duration::from_millis(100));
        assert!(hung.unwrap_err().contains("did not end"));
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}
