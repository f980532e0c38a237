//! Looks for a toolchain on this host and asks it for its version.
//!
//! This runs programs outside any sandbox: only those that a recipe names, which are the host's own.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::recipe::VersionRule;
use super::version;

/// Where a name without a slash is looked for: what the `PATH` inside will be.
const DIRECTORIES: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];
/// The one tree of the host that every sandbox shows.
const SHOWN_INSIDE: &str = "/usr";
/// Names under which it is shown.
const SHOWN_PATHS: &[&str] = &[SHOWN_INSIDE, "/bin", "/sbin"];
/// The slowest honest toolchain starts a virtual machine on a busy host to print its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any version message; the rest of a longer one is not read.
const LONGEST_MESSAGE: u64 = 64 * 1024;

/// A program that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) program: PathBuf,
    pub(crate) version: String,
}

/// Why a candidate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is not there.
    NotFound,
    /// It is there, and something is in the way.
    Unusable(String),
}

/// Finds one candidate of a recipe and its version.
pub(crate) fn probe(candidate: &str, rule: &VersionRule) -> Result<Found, Absent> {
    let program = locate(candidate)?;
    let version = ask_version(&program, rule, PATIENCE)
        .map_err(|reason| Absent::Unusable(format!("{}: {reason}", program.display())))?;
    Ok(Found { program, version })
}

fn locate(candidate: &str) -> Result<PathBuf, Absent> {
    if candidate.contains('/') {
        return usable(Path::new(candidate));
    }
    let mut absent = Absent::NotFound;
    for directory in DIRECTORIES {
        match usable(&Path::new(directory).join(candidate)) {
            Ok(program) => return Ok(program),
            Err(Absent::NotFound) => {}
            Err(unusable) => absent = unusable,
        }
    }
    Err(absent)
}

/// The path under which a program can be started inside.
fn usable(path: &Path) -> Result<PathBuf, Absent> {
    let unusable = |reason: String| Absent::Unusable(format!("{}: {reason}", path.display()));
    if !path.is_absolute() {
        return Err(unusable("it must be an absolute path or a bare name".into()));
    }
    // A toolchain's links are the host's own: no sandboxed program can write them.
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Absent::NotFound),
        Err(error) => return Err(unusable(format!("cannot be looked at: {error}"))),
    };
    if !real.starts_with(SHOWN_INSIDE) {
        return Err(unusable(format!(
            "it lies in {}, and of the host's programs a sandbox shows only {SHOWN_INSIDE}",
            real.parent().unwrap_or(&real).display()
        )));
    }
    let metadata =
        real.metadata().map_err(|error| unusable(format!("cannot be looked at: {error}")))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(unusable("it is not an executable file".into()));
    }
    // A path within what is shown stays as it is written: some programs act by the name they are
    // called by. Another one, such as a link by way of /etc/alternatives, leads nowhere inside.
    Ok(if leads_there_inside(path) { path.to_owned() } else { real })
}

/// Whether a path, and every link on the way from it to its file, is there inside as well.
fn leads_there_inside(path: &Path) -> bool {
    let mut path = path.to_owned();
    // As many links as the kernel itself would follow.
    for _ in 0..40 {
        if !SHOWN_PATHS.iter().any(|shown| path.starts_with(shown)) {
            return false;
        }
        let Ok(target) = path.read_link() else {
            return true;
        };
        if target.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        path.set_file_name(target);
    }
    false
}

fn ask_version(program: &Path, rule: &VersionRule, patience: Duration) -> Result<String, String> {
    let (message, status) = run(program, &rule.args, patience)?;
    if !status.success() {
        return Err(format!("asked for its version, it ended with {status}"));
    }
    let version = version::find(&message, rule.after.as_deref());
    version.map(ToOwned::to_owned).ok_or_else(|| {
        let first_line = message.lines().next().unwrap_or_default();
        format!(
            "it printed no version: '{}'",
            first_line.chars().take(80).collect::<String>().escape_debug()
        )
    })
}

/// What a program prints on both streams, and how it ends.
fn run(
    program: &Path,
    args: &[String],
    patience: Duration,
) -> Result<(String, ExitStatus), String> {
    let deadline = Instant::now() + patience;
    let failed = |error: io::Error| format!("it cannot be started: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", DIRECTORIES.join(":"))
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer);
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
            "asked for its version, it did not end within {}",
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
        ask_version(Path::new("/bin/sh"), &rule(&["-c", script]), patience)
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

    #[test]
    fn what_a_sandbox_does_not_show_cannot_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let shim = directory.path().join("tool");
        std::fs::copy("/bin/sh", &shim).unwrap();
        let reason = usable(&shim).unwrap_err();
        assert!(
            matches!(&reason, Absent::Unusable(text) if text.contains("shows only /usr")),
            "{reason:?}"
        );
        assert_eq!(usable(Path::new("/usr/bin/no-such-tool")), Err(Absent::NotFound));
        assert!(matches!(usable(Path::new("/usr")), Err(Absent::Unusable(_))));
        assert!(matches!(usable(Path::new("a/b")), Err(Absent::Unusable(_))));
    }

    #[test]
    fn a_link_through_another_tree_is_replaced_by_what_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("env");
        std::os::unix::fs::symlink("/usr/bin/env", &link).unwrap();
        assert_eq!(usable(&link), Ok(PathBuf::from("/usr/bin/env")));
        assert_eq!(usable(Path::new("/usr/bin/env")), Ok(PathBuf::from("/usr/bin/env")));
    }

    #[test]
    fn bare_names_are_looked_for_where_programs_are() {
        assert!(locate("sh").is_ok());
        assert_eq!(locate("no-such-tool"), Err(Absent::NotFound));
    }
}
