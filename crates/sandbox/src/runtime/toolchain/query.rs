//! Runs a toolchain to query its version, location or settings.
//!
//! These programs run outside any sandbox: only programs of the host that a recipe names.

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

/// The slowest toolchains start a virtual machine to print their version, on a busy host.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum output that is read; a version message is much shorter.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// Queries the version of a program.
pub(crate) fn version(
    program: &Path,
    rule: &VersionRule,
    timeout: Duration,
) -> Result<String, String> {
    let (message, status) =
        run(program, &rule.args, Streams::Both, Variables::AsInSandbox, timeout)?;
    if !status.success() {
        return Err(format!("its version query ended with {status}"));
    }
    version_in(&message, rule)
}

/// Finds the version in the output of a program.
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

/// Queries the real path or root directory of a program.
pub(crate) fn real_location(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) =
        run(program, args, Streams::Stdout, Variables::AsInSandbox, PROBE_TIMEOUT)?;
    if !status.success() {
        return Err(format!("its location query ended with {status}"));
    }
    Ok(message.lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs a program with the user's full environment, and returns its standard output.
pub(crate) fn with_user_environment(program: &Path, args: &[String]) -> Result<String, String> {
    let (message, status) = run(program, args, Streams::Stdout, Variables::All, PROBE_TIMEOUT)?;
    if !status.success() {
        return Err(format!("its settings query ended with {status}"));
    }
    Ok(message)
}

/// The environment variables for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variables {
    /// Those of a sandbox, unless the program may be a shim.
    AsInSandbox,
    All,
}

/// The streams to read: programs print their version to either one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    Both,
    Stdout,
}

/// Runs a program; returns its output and exit status.
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
        // As inside a sandbox, so that no variable of this process changes the result.
        command.env_clear().env("PATH", SYSTEM_PATH.join(":"));
    }
    // Otherwise it may be a shim, which finds its program by the user's settings.
    command.env("LANG", "C.UTF-8").stdout(writer.try_clone().map_err(failed)?);
    match streams {
        Streams::Both => command.stderr(writer),
        Streams::Stdout => {
            drop(writer);
            command.stderr(Stdio::null())
        }
    };
    let mut child = command.spawn().map_err(failed)?;
    // The command holds the write ends of the pipe, and the reader waits until all of them are closed.
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
        _ => Err(format!("did not exit within {}", sandbox_core::format_duration(timeout))),
    }
}

/// Waits for the exit, which is near once both streams are closed; kills the program at the deadline.
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
    fn a_failing_toolchain_and_one_without_a_version_are_errors() {
        let timeout = Duration::from_secs(10);
        let failed = shell("echo 1.2.3; exit 3", timeout).unwrap_err();
        assert!(failed.contains("exit status: 3"), "{failed}");
        let silent = shell("echo nothing here", timeout).unwrap_err();
        assert!(silent.contains("'nothing here'"), "{silent}");
    }

    #[test]
    fn a_hanging_toolchain_is_killed() {
        let started = Instant::now();
        let hung = shell("exec sleep 1000", Duration::from_millis(100)).unwrap_err();
        assert!(hung.contains("did not exit within 100ms"), "{hung}");
        // With both streams closed the program can still be running.
        let hung = shell("exec sleep 1000 >/dev/null 2>&1", Duration::from_millis(100));
        assert!(hung.unwrap_err().contains("did not exit"));
        assert!(started.elapsed() < Duration::from_mins(1));
    }
}
