//! The helper process: accepts connections until it is asked to exit or has been idle for long enough, and exits when its
//! running executions have finished.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::activity::Activity;
use super::directory::HelperDirectory;
use super::executable::Executable;
use super::message::Status;
use super::process_context::ProcessContext;
use super::session::handle_connection;
use super::settings::DEFAULT_IDLE;
use super::shared_sandbox::SharedSandbox;
use crate::errors::Failure;

/// Before something is tried again that could not be done.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// What all connections share.
pub(super) struct Helper {
    pub(super) executable: Executable,
    pub(super) context: ProcessContext,
    /// The sandbox, or why it could not be started.
    pub(super) kept: Result<SharedSandbox, String>,
    pub(super) activity: Activity,
    since: DateTime<Utc>,
    /// Wakes the main thread, which waits for connections.
    wake: OwnedFd,
    /// Connections that close when the helper exits, which their clients wait for.
    closed_at_exit: Mutex<Vec<UnixStream>>,
}

/// The arguments of the helper. They are internal and appear in no help text.
pub(super) const ARGUMENTS: [&str; 2] = ["warm", "serve"];

/// Whether a command line is that of the helper.
pub(crate) fn is_helper(line: impl IntoIterator<Item = OsString>) -> bool {
    line.into_iter().skip(1).eq(ARGUMENTS.map(OsString::from))
}

/// Runs the helper until it exits.
pub(crate) fn serve() -> Result<u8, Failure> {
    let listener = inherited()?;
    let failed = |error: io::Error| Failure::internal(&error);
    // Signals of the terminal are for those who sit there. It fails where that is so already.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"sandbox-warm");
    let context = ProcessContext::own().map_err(failed)?;
    let (directory, key) = (HelperDirectory::of_user()?, context.key());
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let helper = Arc::new(Helper {
        executable: Executable::own().map_err(failed)?,
        context,
        // Before any other thread exists: starting the sandbox starts processes.
        kept: SharedSandbox::start().map_err(|failure| failure.to_string()),
        activity: Activity::new(DEFAULT_IDLE),
        since: Utc::now(),
        wake: wake.map_err(|error| failed(error.into()))?,
        closed_at_exit: Mutex::new(Vec::new()),
    });
    listen(&helper, listener, &directory, &key).map_err(failed)?;
    helper.activity.wait_until_nothing_runs();
    if let Ok(kept) = &helper.kept {
        kept.take_down();
    }
    Ok(0)
}

/// The socket that the client who started us has made.
fn inherited() -> Result<UnixListener, Failure> {
    let stdin = rustix::stdio::stdin();
    let listens = rustix::net::sockopt::socket_acceptconn(stdin).unwrap_or(false);
    if !listens {
        let reason = "'warm serve' is internal and started by 'sandbox-run --warm'";
        return Err(Failure::Usage(reason.to_owned()));
    }
    let take = || {
        let listener = UnixListener::from(rustix::io::fcntl_dupfd_cloexec(stdin, 3)?);
        listener.set_nonblocking(true)?;
        // From now on it is this process that who connects finds at the other end.
        rustix::net::listen(&listener, BACKLOG)?;
        // Nothing that we start may take it for its input.
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        Ok::<_, io::Error>(listener)
    };
    take().map_err(|error| Failure::internal(&error))
}

/// Takes connections until it is time to go. The socket is closed before the lock is given back: who finds
/// it closed finds it gone.
fn listen(
    helper: &Arc<Helper>,
    listener: UnixListener,
    directory: &HelperDirectory,
    key: &str,
) -> io::Result<()> {
    while let Some(left) = helper.activity.left() {
        match listener.accept() {
            Ok((stream, _)) => show_in(helper, stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock && left.is_zero() => {
                // Whoever has the lock is about to connect.
                let Some(lock) = directory.try_lock(key) else {
                    thread::sleep(RETRY_INTERVAL);
                    continue;
                };
                // Or has done so by now.
                if let Ok((stream, _)) = listener.accept() {
                    show_in(helper, stream);
                } else if helper.activity.leave_if_idle() {
                    directory.remove(key, &lock)?;
                    drop(listener);
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(&listener, &helper.wake, left)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Out of descriptors, for example: it passes.
            Err(_) => thread::sleep(RETRY_INTERVAL),
        }
    }
    // Who asked us to go has the lock, and does with the socket what is to be done. Where nobody did, because
    // there is no sandbox, one that nobody answers on is left, which is as good as none.
    Ok(())
}

/// A connection that is attended to, until the thread that does so ends in whatever way.
struct Attended<'a> {
    helper: &'a Helper,
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        drop(self.helper.activity.visit());
        self.helper.look_again();
    }
}

/// Attends to a connection on a thread of its own.
fn show_in(helper: &Arc<Helper>, stream: UnixStream) {
    helper.activity.arrive();
    let shared = Arc::clone(helper);
    let handle_connection = move || {
        let _attended = Attended { helper: &shared };
        handle_connection(&shared, stream);
    };
    if thread::Builder::new().name("client".to_owned()).spawn(handle_connection).is_err() {
        // The connection is closed with what was to handle_connection to it. Its client tries again.
        drop(helper.activity.visit());
        thread::sleep(RETRY_INTERVAL);
    }
}

fn wait(listener: &UnixListener, wake: &OwnedFd, most: Duration) -> io::Result<()> {
    let mut awaited = [PollFd::new(listener, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
    // A time that the kernel cannot count is as good as a day.
    let most = Timespec::try_from(most.min(Duration::from_hours(24))).ok();
    match poll(&mut awaited, most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    // However often it was woken, it looks once. Nothing to read is no failure.
    let _ = rustix::io::read(wake, &mut [0_u8; 8]);
    Ok(())
}

impl Helper {
    pub(super) fn status(&self) -> Status {
        let figures = self.activity.figures();
        Status {
            process: std::process::id(),
            version: self.executable.version.clone(),
            since: self.since,
            executions: figures.executions,
            running: figures.running,
            idle: figures.idle,
        }
    }

    /// Takes no more. Returns how many are running.
    pub(super) fn leave(&self) -> usize {
        let running = self.activity.leave();
        self.look_again();
        running
    }

    /// Has the main thread look at the activity, which has changed.
    pub(super) fn look_again(&self) {
        // It is full only if nobody has looked since it was written to before.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Closes this connection by our end.
    pub(super) fn close_at_end(&self, stream: UnixStream) {
        self.closed_at_exit.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}
