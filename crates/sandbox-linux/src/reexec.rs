//! How the launcher is found: it is this executable, started again in a hidden mode.
//!
//! A function in `.init_array` runs before `main` in every program that links this crate. It looks for
//! a name that only [`spawn`] sets; where it finds it, the process becomes the launcher and `main`
//! never runs. So a program that uses the library needs no second binary, no search path and no call
//! at the top of `main`, and the launcher always fits the library. See docs/adr/0002.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::launcher;
use crate::socket;
use crate::step::{AtStep, StepError};

/// The launcher's name, in the process list and as the sign by which it knows itself.
const NAME: &str = "sandbox-launcher";
const MARK: &std::ffi::CStr = c"SANDBOX_LAUNCHER";

/// Starts the launcher and gives its process and the socket to it.
pub(crate) fn spawn() -> Result<(Child, OwnedFd), StepError> {
    let (ours, theirs) = socket::pair().at("connect the launcher")?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(NAME)
        .env_clear()
        .env(MARK.to_str().expect("the mark is plain text"), "1")
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (name, value) in inherited_settings() {
        command.env(name, value);
    }
    let child = command.spawn().at("start the launcher from this executable")?;
    Ok((child, ours))
}

/// Coverage is measured in the launcher too, where the build asks for it.
fn inherited_settings() -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().filter(|(name, _)| name == "LLVM_PROFILE_FILE")
}

#[used]
// SAFETY: `.init_array` holds pointers to functions of the C calling convention, which the C runtime
// calls once, before `main`, in a single thread. The function is one, and for every process but a
// launcher it only looks at the environment.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn become_launcher_if_marked() {
        // SAFETY: getenv demands a terminated name; no other thread exists that could change the
        // environment.
        let marked = unsafe { !libc::getenv(MARK.as_ptr()).is_null() };
        if marked && is_named_launcher() {
            become_launcher();
        }
    }
    become_launcher_if_marked
};

/// The mark alone could be inherited by accident; the name is given only by [`spawn`].
fn is_named_launcher() -> bool {
    let mut command_line = [0; 32];
    let Ok(file) = std::fs::File::open("/proc/self/cmdline") else {
        return false;
    };
    let length = rustix::io::read(&file, &mut command_line).unwrap_or(0);
    command_line[..length].split(|byte| *byte == 0).next() == Some(NAME.as_bytes())
}

fn become_launcher() -> ! {
    // Standard input is the socket; it moves away, so that no later child can take it for input.
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
    let nothing = std::fs::File::open("/dev/null");
    let (Ok(socket), Ok(nothing)) = (socket, nothing) else { crate::syscall::exit_now(1) };
    if rustix::stdio::dup2_stdin(nothing.as_fd()).is_err() {
        crate::syscall::exit_now(1);
    }
    drop(nothing);
    launcher::main(socket)
}
