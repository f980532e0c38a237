//! Running a test as an ordinary user.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::skip::skip;

/// The user `nobody`.
const NOBODY: &str = "65534";

/// Runs a test as an ordinary user. Root runs the test with this full name again as `nobody`, from a readable copy of
/// the test program.
pub fn as_ordinary_user(name: &str, test: impl FnOnce()) {
    if !rustix::process::geteuid().is_root() {
        return test();
    }
    if which("setpriv").is_none() {
        return skip(name, "setpriv (util-linux) is not installed");
    }
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), readable).expect("our own directory can be opened");
    let copy = place.path().join("test-program");
    let program = std::env::current_exe().expect("this program has a path");
    std::fs::copy(program, &copy).expect("a program can copy itself");
    let child = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
        .arg(&copy)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .current_dir("/")
        .env("HOME", "/nonexistent")
        // The user nobody cannot write the coverage files of root's tests.
        .env_remove("LLVM_PROFILE_FILE")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv can be started");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(child.status.success(), "as an ordinary user:\n{said}");
    // A misspelt name would select no test and succeed.
    assert!(said.contains("1 passed"), "no test is called {name}:\n{said}");
}

fn which(program: &str) -> Option<std::path::PathBuf> {
    let directories = ["/usr/bin", "/bin", "/usr/local/bin"].into_iter();
    directories
        .map(|directory| std::path::Path::new(directory).join(program))
        .find(|path| path.exists())
}
