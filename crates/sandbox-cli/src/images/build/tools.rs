//! Runs the programs of a build: forwards stop signals to them, and quotes their last lines when they fail.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::low_level::emulate_default_handler;

use crate::errors::Failure;
use crate::signals;

/// Why a build ended without a root file system.
#[derive(Debug)]
pub(super) enum BuildError {
    /// By a stop signal.
    Cancelled,
    Failed(Failure),
}

impl From<Failure> for BuildError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs programs one after the other.
pub(super) struct ToolRunner {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
enum State {
    Idle,
    Running(OwnedFd),
    /// A stop signal arrived: no further program is started.
    Cancelled,
    /// Nothing is left to clean up: stop signals have their default action.
    Finished,
}

/// How many of the last lines of a failed program are quoted.
const MAX_QUOTED_LINES: usize = 6;
/// Messages of mmdebstrap when it has neither root nor a usable user namespace.
const NO_MODE_MESSAGES: [&str; 2] =
    ["unable to pick chroot mode automatically", "unshare: unshare failed"];

impl ToolRunner {
    pub(super) fn new() -> Result<Self, Failure> {
        let state = Arc::new(Mutex::new(State::Idle));
        let shared = Arc::clone(&state);
        signals::stop_signals()
            .and_then(|mut signals| {
                let listen =
                    move || signals.forever().for_each(|signal| handle_signal(&shared, signal));
                thread::Builder::new().name("signals".into()).spawn(listen)
            })
            .map_err(|error| Failure::thread(&error))?;
        Ok(Self { state })
    }

    /// Runs a program to its end, and passes on each line of its standard error.
    pub(super) fn run(
        &self,
        name: &str,
        mut command: Command,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<(), BuildError> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = self.start(command, name)?;
        let mut last = VecDeque::new();
        // Until its children have closed standard error too, so that none is left running.
        for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let Ok(line) = line else { continue };
            on_line(&line);
            if last.len() == MAX_QUOTED_LINES {
                last.pop_front();
            }
            if !line.starts_with("I: ") {
                last.push_back(line);
            }
        }
        let status = child.wait();
        let mut state = lock(&self.state);
        if matches!(*state, State::Cancelled) {
            return Err(BuildError::Cancelled);
        }
        *state = State::Idle;
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(name, &format!("{status}"), last.make_contiguous()).into()),
            Err(error) => Err(Failure::Internal(format!("cannot wait for {name}: {error}")).into()),
        }
    }

    fn start(&self, mut command: Command, name: &str) -> Result<Child, BuildError> {
        let mut state = lock(&self.state);
        if matches!(*state, State::Cancelled) {
            return Err(BuildError::Cancelled);
        }
        let child = command.spawn().map_err(|error| cannot_start(name, &error))?;
        let handle = Pid::from_raw(child.id().cast_signed())
            .and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
        if let Some(handle) = handle {
            *state = State::Running(handle);
        }
        Ok(child)
    }

    /// Restores the default action of stop signals.
    pub(super) fn finish(&self) {
        let mut state = lock(&self.state);
        if !matches!(*state, State::Cancelled) {
            *state = State::Finished;
        }
    }
}

fn handle_signal(state: &Mutex<State>, signal: i32) {
    let mut state = lock(state);
    match &*state {
        State::Finished => {
            // It terminates this process; on failure the command simply continues.
            let _ = emulate_default_handler(signal);
        }
        State::Running(handle) => {
            // mmdebstrap unmounts and removes its files on SIGTERM.
            let _ = pidfd_send_signal(handle, Signal::TERM);
            *state = State::Cancelled;
        }
        State::Idle | State::Cancelled => *state = State::Cancelled,
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command from its arguments.
pub(super) fn command(words: &[String]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command.args(words);
    command
}

pub(super) fn require_mmdebstrap() -> Result<(), Failure> {
    let mut command = Command::new("mmdebstrap");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(|error| cannot_start("mmdebstrap", &error))
}

fn cannot_start(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let package = if name == "python3" { "python3-pip" } else { name };
        Failure::Usage(format!(
            "cannot build images without {name}: install it with: apt-get install {package}"
        ))
    } else {
        Failure::Internal(format!("cannot start {name}: {error}"))
    }
}

fn failed(name: &str, status: &str, last_lines: &[String]) -> Failure {
    if last_lines.iter().any(|line| NO_MODE_MESSAGES.iter().any(|part| line.contains(part))) {
        return Failure::Usage(
            "mmdebstrap needs root or a user namespace: run this as root, or \
             apt-get install uidmap and add an id range for this user to /etc/subuid and /etc/subgid"
                .to_owned(),
        );
    }
    let last_lines: Vec<&str> = last_lines.iter().map(|line| line.trim()).collect();
    Failure::Internal(format!("{name} failed ({status}): {}", last_lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn lines_of_a_program_are_passed_on_and_quoted_when_it_fails() {
        let tools = ToolRunner { state: Arc::new(Mutex::new(State::Idle)) };
        let mut lines = Vec::new();
        let mut note = |line: &str| lines.push(line.to_owned());
        tools
            .run("shell", shell("echo 'I: one' >&2; echo hidden; echo two >&2"), &mut note)
            .unwrap();
        assert_eq!(lines, ["I: one", "two"]);
        let script = "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; echo I: $i >&2; done; exit 3";
        let Err(BuildError::Failed(failure)) = tools.run("shell", shell(script), &mut |_| {})
        else {
            panic!()
        };
        let text = failure.to_string();
        assert!(text.starts_with("shell failed (exit status: 3): line "), "{text}");
        assert!(text.ends_with("; line 8") && !text.contains("line 1;"), "{text}");
        assert!(!text.contains("I: "), "{text}");
        assert_eq!(failure.exit_code(), 125);
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let failure = cannot_start("python3", &io::ErrorKind::NotFound.into());
        assert!(failure.to_string().ends_with("apt-get install python3-pip"), "{failure}");
        assert_eq!(failure.exit_code(), 2);
        let failure =
            failed("mmdebstrap", "1", &[format!("E: {} (use --mode)", NO_MODE_MESSAGES[0])]);
        assert_eq!(failure.exit_code(), 2);
    }

    #[test]
    fn a_signal_stops_the_program_and_no_other_is_started() {
        let tools = ToolRunner { state: Arc::new(Mutex::new(State::Idle)) };
        let state = Arc::clone(&tools.state);
        let mut stop = |_: &str| handle_signal(&state, signal_hook::consts::SIGTERM);
        let stopped = tools.run("shell", shell("echo ready >&2; exec sleep 60"), &mut stop);
        assert!(matches!(stopped, Err(BuildError::Cancelled)), "{stopped:?}");
        let again = tools.run("shell", shell("exit 0"), &mut |_| {});
        assert!(matches!(again, Err(BuildError::Cancelled)), "{again:?}");
    }
}
