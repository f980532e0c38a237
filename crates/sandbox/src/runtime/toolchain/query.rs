//! Asks a toolchain for its version, or for its real place.
//!
//! This runs programs outside any sandbox: only those that a recipe names, which are the host's own.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::host_paths::SYSTEM_PATH;
use super::mounts;
use crate::runtime::recipe::VersionRule;
use crate::runtime::version;

/// The slowest honest toolchain starts a virtual machine on a busy host to print its version.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// More than any version message; the rest of a longer one is not read.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The version a program tells.
pub(crate) fn version(
    program: &Path,
    rule: &VersionRule,
    timeout: Duration,
) -> Result<String, String> {
    let (message, status) =
        run(program, &rule.args, Streams::Both, Variables::AsInSandbox, timeout)?;
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
pub(crate) fn real_location(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) =
        run(program, args, Streams::Stdout, Variables::AsInSandbox, PROBE_TIMEOUT)?;
    if !status.success() {
        return Err(format!("asked where it really is, it ended with {status}"));
    }
    Ok(message.lines().next().unwrap_or_default().trim().to_owned())
}

/// What a program says when it is started as the user would start it, with all of the user's settings.
pub(crate) fn with_user_environment(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) = run(program, args, Streams::Stdout, Variables::All, PROBE_TIMEOUT)?;
    if !status.success() {
        return Err(format!("asked for its settings, it ended with {status}"));
    }
    Ok(message)
}

/// Which of our variables a program gets to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variables {
    /// Those that it will have inside, unless it may be a shim.
    AsInSandbox,
    All,
}

/// Which streams are listened to: some tell their version on the one, some on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    Both,
    Stdout,
}

/// What a program prints, and how it ends.
fn run(
    program: &Path,
    args: &[String],
    streams: Streams,
    variables: Variables,
    timeout: Duration,
) -> Result<(String, ExitStatus), String> {
    let deadline = Instant::now() + timeout;
    let failed = |error: io::Error| format!("it cannot be started: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(args).current_dir("/").stdin(Stdio::null());
    if variables == Variables::AsInSandbox && mounts::is_reachable_inside(program) {
        // As it will be inside, so that no variable of ours changes what it says.
        command.env_clear().env("PATH", SYSTEM_PATH.join(":"));
    }
    // Otherwise it may be a shim, which finds what it stands for by the user's own settings.
    command.env("LANG", "C.UTF-8").stdout(writer.try_clone().map_err(failed)?);
    match streams {
        Streams::Both => command.stderr(writer),
        Streams::Stdout => {
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
        let _ = reader.take(MAX_OUTPUT_BYTES).read_to_end(&mut message);
        let _ = sender.send(message);
    });
    let message = receiver.recv_timeout(timeout);
    let status = wait_until(&mut child, deadline);
    match (message, status) {
        (Ok(message), Ok(Some(status))) => {
            Ok((String::from_utf8_lossy(&message).into_owned(), status))
        }
        (_, Err(error)) => Err(format!("it cannot be waited for: {error}")),
        _ => Err(format!(
            "asked a run_program, it did not end within {}",
            sandbox_core::format_duration(timeout)
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

    fn shell(script: &str, timeout: Duration) -> Result<String, String> {
        version(Path::new("/bin/sh"), &rule(&["-c", script]), timeout)
    }

    #[test]
    fn a_version_is_read_from_either_stream() {
        let timeout = Duration::from_secs(10);
        assert_eq!(shell("echo tool 1.2.3", timeout).unwrap(), "1.2.3");
        assert_eq!(shell("echo tool 1.2.4 >&2", timeout).unwrap(), "1.2.4");
    }

    #[test]
    fn a_toolchain_that_fails_or_says_nothing_is_told_apart() {
        let timeout = Duration::from_secs(10);
        let failed = shell("echo 1.2.3; exit 3", timeout).unwrap_err();
        assert!(failed.contains("exit status: 3"), "{failed}");
        let silent = shell("echo nothing here", timeout).unwrap_err();
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
