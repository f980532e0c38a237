//! Other programs: told to stop when we are, and quoted when they fail.

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

/// Why there is no root file system.
#[derive(Debug)]
pub(super) enum Stopped {
    /// A signal asked for it.
    Cancelled,
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs programs one after another.
pub(super) struct Tools {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
enum State {
    Idle,
    Running(OwnedFd),
    /// A signal came: nothing is started any more.
    Cancelled,
    /// There is nothing left to tidy up, and signals do what they always do.
    Over,
}

/// Enough for the reason; the first of them is not the newest.
const QUOTED_LINES: usize = 6;
/// What is said where mmdebstrap can do its work neither way.
const NO_MODE: [&str; 2] = ["unable to pick chroot mode automatically", "unshare: unshare failed"];

impl Tools {
    pub(super) fn new() -> Result<Self, Failure> {
        let state = Arc::new(Mutex::new(State::Idle));
        let shared = Arc::clone(&state);
        signals::those_that_stop()
            .and_then(|mut signals| {
                let listen = move || signals.forever().for_each(|signal| heed(&shared, signal));
                thread::Builder::new().name("signals".into()).spawn(listen)
            })
            .map_err(|error| Failure::Ours(format!("cannot start a thread: {error}")))?;
        Ok(Self { state })
    }

    /// Runs one to its end, and passes on the lines that it says on the way.
    pub(super) fn run(
        &self,
        name: &str,
        mut command: Command,
        told: &mut dyn FnMut(&str),
    ) -> Result<(), Stopped> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = self.start(command, name)?;
        let mut last = VecDeque::new();
        // To the end of what its own children say: then they are gone too.
        for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let Ok(line) = line else { continue };
            told(&line);
            if last.len() == QUOTED_LINES {
                last.pop_front();
            }
            if !line.starts_with("I: ") {
                last.push_back(line);
            }
        }
        let status = child.wait();
        let mut state = lock(&self.state);
        if matches!(*state, State::Cancelled) {
            return Err(Stopped::Cancelled);
        }
        *state = State::Idle;
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(name, &format!("{status}"), last.make_contiguous()).into()),
            Err(error) => Err(Failure::Ours(format!("cannot wait for {name}: {error}")).into()),
        }
    }

    fn start(&self, mut command: Command, name: &str) -> Result<Child, Stopped> {
        let mut state = lock(&self.state);
        if matches!(*state, State::Cancelled) {
            return Err(Stopped::Cancelled);
        }
        let child = command.spawn().map_err(|error| cannot_start(name, &error))?;
        let handle = Pid::from_raw(child.id().cast_signed())
            .and_then(|process| pidfd_open(process, PidfdFlags::empty()).ok());
        if let Some(handle) = handle {
            *state = State::Running(handle);
        }
        Ok(child)
    }

    /// From now on a signal ends us at once.
    pub(super) fn none_is_left(&self) {
        let mut state = lock(&self.state);
        if !matches!(*state, State::Cancelled) {
            *state = State::Over;
        }
    }
}

fn heed(state: &Mutex<State>, signal: i32) {
    let mut state = lock(state);
    match &*state {
        State::Over => {
            // It ends us, or we go on: there is nobody to tell.
            let _ = emulate_default_handler(signal);
        }
        State::Running(handle) => {
            // It has mounts to undo and files to remove, and does so.
            let _ = pidfd_send_signal(handle, Signal::TERM);
            *state = State::Cancelled;
        }
        State::Idle | State::Cancelled => *state = State::Cancelled,
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command from its words.
pub(super) fn command(words: &[String]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command.args(words);
    command
}

pub(super) fn look_for_mmdebstrap() -> Result<(), Failure> {
    let mut command = Command::new("mmdebstrap");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(|error| cannot_start("mmdebstrap", &error))
}

fn cannot_start(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let package = if name == "python3" { "python3-pip" } else { name };
        let how = format!("to get it: apt-get install {package}");
        Failure::Usage(format!("images are built with {name}, which is not here ({how})"))
    } else {
        Failure::Ours(format!("cannot start {name}: {error}"))
    }
}

fn failed(name: &str, status: &str, said: &[String]) -> Failure {
    if said.iter().any(|line| NO_MODE.iter().any(|part| line.contains(part))) {
        return Failure::Usage(
            "mmdebstrap can make a root file system neither as root nor in a user namespace: run this as root, or \
             apt-get install uidmap and give yourself a range in /etc/subuid and /etc/subgid"
                .to_owned(),
        );
    }
    let said: Vec<&str> = said.iter().map(|line| line.trim()).collect();
    Failure::Ours(format!("{name} failed ({status}): {}", said.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn what_a_program_says_is_passed_on_and_quoted_when_it_fails() {
        let tools = Tools { state: Arc::new(Mutex::new(State::Idle)) };
        let mut told = Vec::new();
        let mut note = |line: &str| told.push(line.to_owned());
        tools
            .run("shell", shell("echo 'I: one' >&2; echo hidden; echo two >&2"), &mut note)
            .unwrap();
        assert_eq!(told, ["I: one", "two"]);
        let script = "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; echo I: $i >&2; done; exit 3";
        let Err(Stopped::Failed(failure)) = tools.run("shell", shell(script), &mut |_| {}) else {
            panic!()
        };
        let text = failure.to_string();
        assert!(text.starts_with("shell failed (exit status: 3): line "), "{text}");
        assert!(text.ends_with("; line 8") && !text.contains("line 1;"), "{text}");
        assert!(!text.contains("I: "), "{text}");
        assert_eq!(failure.exit_code(), 125);
    }

    #[test]
    fn a_program_that_is_missing_is_told_with_its_package() {
        let failure = cannot_start("python3", &io::ErrorKind::NotFound.into());
        assert!(failure.to_string().ends_with("apt-get install python3-pip)"), "{failure}");
        assert_eq!(failure.exit_code(), 2);
        let failure = failed("mmdebstrap", "1", &[format!("E: {} (use --mode)", NO_MODE[0])]);
        assert_eq!(failure.exit_code(), 2);
    }

    #[test]
    fn a_signal_ends_what_runs_and_nothing_is_started_after_it() {
        let tools = Tools { state: Arc::new(Mutex::new(State::Idle)) };
        let state = Arc::clone(&tools.state);
        let mut stop = |_: &str| heed(&state, signal_hook::consts::SIGTERM);
        let stopped = tools.run("shell", shell("echo ready >&2; exec sleep 60"), &mut stop);
        assert!(matches!(stopped, Err(Stopped::Cancelled)), "{stopped:?}");
        let again = tools.run("shell", shell("exit 0"), &mut |_| {});
        assert!(matches!(again, Err(Stopped::Cancelled)), "{again:?}");
    }
}
