//! Connects to the helper, or starts one, and sends it a request.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::directory::{HelperDirectory, Lock};
use super::frame::{self, Kind};
use super::message::{HelperRequest, Order, REPLY_TIMEOUT, Reply, recv, send};
use super::{executable, helper, settings};
use crate::errors::Failure;

/// Maximum number of helpers to start for one request.
const MAX_ATTEMPTS: u32 = 3;

/// A request and the contents of its files.
struct Parcel<'a> {
    question: HelperRequest,
    files: &'a [Vec<u8>],
}

impl Parcel<'_> {
    fn send(&self, stream: &UnixStream) -> io::Result<()> {
        send(stream, &self.question)?;
        self.files.iter().try_for_each(|file| frame::write(stream, Kind::File, file))
    }
}

/// The outcome of sending a request.
enum Handed {
    /// The helper accepted it, and sends its events on this connection.
    Taken(UnixStream),
    /// The helper has another executable or process context.
    Differs,
    /// The helper exited before it accepted the request.
    Gone,
}

/// Hands the order to the helper of this name, which is started if it is not there, and replaced if it is
/// of another executable.
pub(super) fn hand_in(
    directory: &HelperDirectory,
    key: &str,
    order: Order,
    files: &[Vec<u8>],
) -> Result<UnixStream, Failure> {
    let parcel = Parcel { question: HelperRequest::Execute(Box::new(order)), files };
    for _ in 0..MAX_ATTEMPTS {
        if let Some(stream) = find_or_start(directory, key, &parcel)? {
            return Ok(stream);
        }
    }
    Err(not_started(&format!(
        "it exited before it accepted a request, see its log {}",
        directory.log_path(key).display()
    )))
}

/// A connection on which the question was taken; none if even a helper that was just started has ended,
/// as it does when somebody asks it to.
fn find_or_start(
    directory: &HelperDirectory,
    key: &str,
    parcel: &Parcel<'_>,
) -> Result<Option<UnixStream>, Failure> {
    // The usual way: it is there, and the right one.
    if let Some(stream) = directory.connect_to_own(key).map_err(unreachable)?
        && let Handed::Taken(stream) = try_to(stream, parcel)?
    {
        return Ok(Some(stream));
    }
    let lock = directory.lock(key).map_err(unreachable)?;
    // Somebody else may have put things right while we waited.
    if let Some(stream) = directory.connect_to_own(key).map_err(unreachable)? {
        match try_to(stream, parcel)? {
            Handed::Taken(stream) => return Ok(Some(stream)),
            Handed::Differs => ask_to_go(directory, key)?,
            Handed::Gone => {}
        }
    }
    let stream = start(directory, key, &lock)?;
    drop(lock);
    match try_to(stream, parcel)? {
        Handed::Taken(stream) => Ok(Some(stream)),
        Handed::Differs => Err(not_started("the new helper has another process context")),
        Handed::Gone => Ok(None),
    }
}

fn try_to(stream: UnixStream, parcel: &Parcel<'_>) -> Result<Handed, Failure> {
    stream.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(unreachable)?;
    // One that has heard enough hangs up, and may have said why.
    let answer = match parcel.send(&stream) {
        Ok(()) => recv(&stream),
        Err(error) => recv(&stream).or(Err(error)),
    };
    match answer {
        Ok(Some(Reply::Taken)) => {
            stream.set_read_timeout(None).map_err(unreachable)?;
            Ok(Handed::Taken(stream))
        }
        Ok(Some(Reply::Differs)) => Ok(Handed::Differs),
        Ok(Some(Reply::NoSandbox(text))) => Err(Failure::Internal(text)),
        Ok(Some(other)) => Err(unreachable(io::Error::other(format!("it said {other:?}")))),
        Ok(None) => Ok(Handed::Gone),
        Err(error) => match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
                Ok(Handed::Gone)
            }
            // An old one, whose words are not ours any more.
            ErrorKind::InvalidData => Ok(Handed::Differs),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Err(silent()),
            _ => Err(unreachable(error)),
        },
    }
}

/// Has a helper take no more. It has said so when this returns; what is running there goes on.
fn ask_to_go(directory: &HelperDirectory, key: &str) -> Result<(), Failure> {
    let Some(stream) = directory.connect_to_own(key).map_err(unreachable)? else { return Ok(()) };
    let answer = stream
        .set_read_timeout(Some(REPLY_TIMEOUT))
        .and_then(|()| send(&stream, &HelperRequest::Go))
        .and_then(|()| recv::<Reply>(&stream));
    match answer {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(silent())
        }
        // Gone is gone.
        _ => Ok(()),
    }
}

/// Makes the socket, hands it to a new helper, and connects to it.
fn start(directory: &HelperDirectory, key: &str, lock: &Lock) -> Result<UnixStream, Failure> {
    let failed = |error: io::Error| not_started(&error.to_string());
    let listener = directory.listen(key, lock).map_err(failed)?;
    let connected = spawn(directory, key, &listener).and_then(|()| directory.connect_to_own(key));
    match connected {
        Ok(Some(stream)) => Ok(stream),
        Ok(None) => Err(not_started("it does not listen on its socket")),
        Err(error) => {
            // A socket without a helper: the reason is told, this would only hide it from others.
            let _ = directory.remove(key, lock);
            Err(failed(error))
        }
    }
}

/// Starts the helper, which outlives this process.
fn spawn(directory: &HelperDirectory, key: &str, listener: &UnixListener) -> io::Result<()> {
    let listener = OwnedFd::from(listener.try_clone()?);
    // What our caller has left open for us is not for a process that stays.
    sandbox::close_others_on_exec()?;
    let mut command = Command::new(executable::OWN);
    command
        .arg0("sandbox-run")
        .args(helper::ARGUMENTS)
        .env_clear()
        .envs(settings::variables())
        .current_dir("/")
        .stdin(Stdio::from(listener))
        .stdout(Stdio::null())
        .stderr(directory.log(key)?);
    if let Some(directory) = settings::runtime_directory() {
        command.env("XDG_RUNTIME_DIR", directory);
    }
    command.spawn()?;
    Ok(())
}

fn not_started(reason: &str) -> Failure {
    Failure::Internal(format!(
        "cannot start the helper of --warm: {reason}; run without --warm instead"
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what becomes of an error on its way")]
pub(super) fn unreachable(error: io::Error) -> Failure {
    Failure::Internal(format!(
        "cannot connect to the helper of --warm: {error}; run without --warm instead"
    ))
}

fn silent() -> Failure {
    Failure::Internal(
        "the helper of --warm does not answer: find its process with 'sandbox-run warm status' \
         and kill it, or run without --warm instead"
            .to_owned(),
    )
}
