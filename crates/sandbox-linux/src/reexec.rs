//! Starts the launcher, and the process that restores a workspace: both are this executable,
//! started again in a hidden mode.
//!
//! A function in `.init_array` runs before `main` in every program that links this crate. It looks
//! for a process name that only [`spawn`] and [`spawn_filler`] set; if it finds one, the process
//! takes that role and `main` never runs. So a program that uses the library needs no second
//! binary, no search path and no call at the top of `main`, and the launcher always has the
//! library's version. See docs/adr/0002.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::launcher;
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::workspace_filler;

/// The launcher's process name, which also marks its role.
const LAUNCHER: &str = "sandbox-launcher";
/// The process name of the filler.
const FILLER: &str = "sandbox-filler";
const MARK: &std::ffi::CStr = c"SANDBOX_LAUNCHER";

/// Starts the launcher; returns its process and the socket to it.
pub(crate) fn spawn() -> Result<(Child, OwnedFd), StepError> {
    let (local, peer) = socket::pair().at("connect the launcher")?;
    let mut command = this_executable_as(LAUNCHER);
    command.stdin(Stdio::from(peer)).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().at("start the launcher from this executable")?;
    Ok((child, local))
}

/// Starts the filler: it restores a workspace into a directory, for an owner, once it is told to on
/// its socket. It reports errors there.
pub(crate) fn spawn_filler(
    content: File,
    directory: OwnedFd,
    socket: OwnedFd,
    owner: u32,
) -> io::Result<Child> {
    let mut command = this_executable_as(FILLER);
    command.arg(owner.to_string());
    command.stdin(Stdio::from(content)).stdout(Stdio::from(directory)).stderr(Stdio::from(socket));
    command.spawn()
}

fn this_executable_as(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .env_clear()
        .env(MARK.to_str().expect("the mark is plain text"), "1")
        .current_dir("/");
    for (name, value) in inherited_settings() {
        command.env(name, value);
    }
    command
}

/// Coverage is also measured in the launcher, if the build enables it.
fn inherited_settings() -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().filter(|(name, _)| name == "LLVM_PROFILE_FILE")
}

#[used]
// SAFETY: `.init_array` holds pointers to functions of the C calling convention, which the C runtime
// calls once, before `main`, in a single thread. The function is one, and for every process but those
// that are marked it only looks at the environment.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn take_role_if_marked() {
        // SAFETY: getenv demands a terminated name; no other thread exists that could change the
        // environment.
        let marked = unsafe { !libc::getenv(MARK.as_ptr()).is_null() };
        if marked {
            take_named_role();
        }
    }
    take_role_if_marked
};

/// The environment alone could be inherited by accident; the process names are set only here.
fn take_named_role() {
    // Room for the longest name, followed by a number.
    let mut command_line = [0; 32];
    let Ok(file) = std::fs::File::open("/proc/self/cmdline") else {
        return;
    };
    let length = rustix::io::read(&file, &mut command_line).unwrap_or(0);
    let mut words = command_line[..length].split(|byte| *byte == 0);
    match words.next() {
        Some(name) if name == LAUNCHER.as_bytes() => become_launcher(),
        Some(name) if name == FILLER.as_bytes() => become_filler(words.next()),
        _ => {}
    }
}

fn become_filler(owner: Option<&[u8]>) -> ! {
    let owner = owner.and_then(|owner| std::str::from_utf8(owner).ok()?.parse().ok());
    let filled = owner.ok_or(io::ErrorKind::InvalidInput.into()).and_then(workspace_filler::run);
    if let Err(error) = &filled {
        // If the send fails, the supervisor is gone.
        let _ = rustix::io::write(rustix::stdio::stderr(), error.to_string().as_bytes());
    }
    crate::syscall::exit_now(i32::from(filled.is_err()))
}

fn become_launcher() -> ! {
    // Standard input is the socket; move it, so that no child uses it as input.
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
    let nothing = std::fs::File::open("/dev/null");
    let (Ok(socket), Ok(nothing)) = (socket, nothing) else { crate::syscall::exit_now(1) };
    if rustix::stdio::dup2_stdin(nothing.as_fd()).is_err() {
        crate::syscall::exit_now(1);
    }
    drop(nothing);
    launcher::main(socket)
}
