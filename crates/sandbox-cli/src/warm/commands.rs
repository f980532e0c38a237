//! `sandbox-run warm`: show and stop helpers.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sandbox::format_duration;
use serde::Serialize;

use super::connect::unreachable;
use super::directory::{Connection, HelperDirectory};
use super::message::{HelperRequest, REPLY_TIMEOUT, Reply, Status, recv, send};
use crate::args::{WarmAction, WarmArgs};
use crate::errors::{Failure, printable};
use crate::stdout::{print, to_json};

/// A helper; an element of the JSON output.
#[derive(Serialize)]
struct Listed {
    process: u32,
    version: String,
    since: String,
    executions: u64,
    running: usize,
    idle_ms: u64,
}

pub(crate) fn run(args: &WarmArgs) -> Result<u8, Failure> {
    match &args.action {
        WarmAction::Status { json } => status(*json),
        WarmAction::Stop => stop(),
    }
}

fn status(json: bool) -> Result<u8, Failure> {
    let directory = HelperDirectory::of_user()?;
    let mut found = Vec::new();
    for key in directory.keys().map_err(unreachable)? {
        if let Connection::Helper(stream) = directory.connect(&key).map_err(unreachable)?
            && let Some(Reply::Status(status)) = ask(&stream, &HelperRequest::Status)?
        {
            found.push(status);
        }
    }
    if json {
        let listed: Vec<Listed> = found.iter().map(Listed::of).collect();
        print(&to_json(&listed)?)?;
    } else {
        print(&lines(&found)?)?;
    }
    Ok(u8::from(found.is_empty()))
}

fn lines(found: &[Status]) -> Result<String, Failure> {
    if found.is_empty() {
        return Ok("no helper is running: start one with 'sandbox-run --warm'\n".to_owned());
    }
    let mut text = String::new();
    for status in found {
        let Status { process, version, since, executions, running, idle } = status;
        let version = printable(version);
        let (since, idle) = (since.format("%FT%TZ"), format_duration(*idle));
        writeln!(
            text,
            "process {process} (version {version}) running since {since}: {executions} executions, \
             {running} of them running; exits after {idle} idle"
        )
        .map_err(|error| Failure::internal(&error))?;
    }
    Ok(text)
}

/// Asks every helper to exit, and waits for the idle ones.
fn stop() -> Result<u8, Failure> {
    let directory = HelperDirectory::of_user()?;
    for key in directory.keys().map_err(unreachable)? {
        let lock = directory.lock(&key).map_err(unreachable)?;
        let answer = match directory.connect(&key).map_err(unreachable)? {
            Connection::Helper(stream) => {
                ask(&stream, &HelperRequest::Go)?.map(|answer| (stream, answer))
            }
            Connection::Nobody => None,
            // In a container that shares the directory, for example: it has clients of its own there.
            Connection::Other(_) => continue,
        };
        directory.remove(&key, &lock).map_err(unreachable)?;
        drop(lock);
        match answer {
            Some((stream, Reply::Going(0))) => wait_for_the_end(&stream)?,
            Some((_, Reply::Going(running))) => {
                print(&format!(
                    "the helper exits once its {running} running executions have finished\n"
                ))?;
            }
            _ => {}
        }
    }
    Ok(0)
}

/// The answer; none from a helper that has ended meanwhile.
fn ask(stream: &UnixStream, question: &HelperRequest) -> Result<Option<Reply>, Failure> {
    let answer = stream
        .set_read_timeout(Some(REPLY_TIMEOUT))
        .and_then(|()| send(stream, question))
        .and_then(|()| recv(stream));
    match answer {
        Err(error) if is_silence(&error) => Err(silent(stream)),
        Err(_) => Ok(None),
        Ok(answer) => Ok(answer),
    }
}

/// A helper closes this connection by its end.
fn wait_for_the_end(mut stream: &UnixStream) -> Result<(), Failure> {
    match stream.read(&mut [0]) {
        Err(error) if is_silence(&error) => Err(silent(stream)),
        _ => Ok(()),
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn silent(stream: &UnixStream) -> Failure {
    let process = rustix::net::sockopt::socket_peercred(stream)
        .map_or("?".to_owned(), |peer| peer.pid.to_string());
    Failure::Internal(format!("the helper does not answer: kill process {process}"))
}

impl Listed {
    fn of(status: &Status) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            process: status.process,
            version: status.version.clone(),
            since: status.since.format("%FT%TZ").to_string(),
            executions: status.executions,
            running: status.running,
            idle_ms: millis(status.idle),
        }
    }
}
