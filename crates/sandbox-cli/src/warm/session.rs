//! One client of the helper.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

use sandbox::{CancelToken, ExecuteError, LanguageChoice, Stdin};

use super::connect::PATIENCE;
use super::frame::{self, Kind};
use super::helper::Helper;
use super::input::RemoteInput;
use super::kept::Kept;
use super::message::{Answer, Order, Question, hear, say};
use super::peer::{Peer, peer};
use crate::errors::Failure;
use crate::run::not_executed;

/// Answers one question. What goes wrong with the connection is the client's to notice.
pub(super) fn attend(helper: &Helper, stream: UnixStream) {
    let is_own = peer(&stream).is_ok_and(|peer| peer == Peer::Own);
    if !is_own || stream.set_read_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    match hear(&stream) {
        Ok(Some(Question::Execute(order))) => {
            let _ = files(&stream, order.asked.files.len())
                .and_then(|files| execute(helper, &stream, *order, files));
            let _ = stream.shutdown(Shutdown::Both);
        }
        Ok(Some(Question::Status)) => {
            let _ = say(&stream, &Answer::Status(helper.status()));
        }
        Ok(Some(Question::Go)) => {
            if say(&stream, &Answer::Going(helper.leave())).is_ok() {
                helper.close_at_end(stream);
            }
        }
        // Somebody who has nothing to ask, or asks in the words of another version.
        Ok(None) => {}
        Err(_) => drop(say(&stream, &Answer::Differs)),
    }
}

/// Hears the contents of so many files.
fn files(stream: &UnixStream, count: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for _ in 0..count {
        match frame::read(stream)? {
            Some((Kind::File, contents)) => files.push(contents),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(files)
}

fn execute(
    helper: &Helper,
    stream: &UnixStream,
    order: Order,
    files: Vec<Vec<u8>>,
) -> io::Result<()> {
    let is_same =
        order.executable == helper.executable && order.surroundings == helper.surroundings.as_str();
    if !is_same {
        return say(stream, &Answer::Differs);
    }
    let kept = match &helper.kept {
        Ok(kept) => kept,
        Err(reason) => {
            let said = say(stream, &Answer::NoSandbox(reason.clone()));
            helper.leave();
            return said;
        }
    };
    // Hanging up before it is taken tells the client to look for another one.
    let Some(running) = helper.tally.begin(order.idle) else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let to_client = Arc::new(Mutex::new(stream.try_clone()?));
    say(stream, &Answer::Taken)?;
    let said = match carry_out(kept, stream, &to_client, order, files) {
        Ok(()) => Ok(()),
        Err(failure) => say(&*lock(&to_client), &Answer::from(failure)),
    };
    // The sandbox was given back and all is said before it counts as done.
    drop(running);
    said
}

fn carry_out(
    kept: &Kept,
    stream: &UnixStream,
    to_client: &Arc<Mutex<UnixStream>>,
    order: Order,
    files: Vec<Vec<u8>>,
) -> Result<(), Failure> {
    let (pieces, input) = RemoteInput::new(Arc::clone(to_client));
    let stdin = if order.asked.has_input { Stdin::from_reader(input) } else { Stdin::Empty };
    let request = order.asked.into_request(files, stdin)?;
    let language: LanguageChoice = request.language().clone();
    let sandbox = if order.no_cache {
        Kept::without_cache()?
    } else {
        kept.sandbox(&language, &order.runtime)?
    };
    let mut execution = sandbox.start(request).map_err(not_executed)?;
    let cancel = execution.cancel_token();
    listen(stream, pieces, cancel.clone())
        .map_err(|error| not_executed(ExecuteError::Thread(error)))?;
    for event in execution.events() {
        let told = serde_json::to_vec(&event)
            .map_err(io::Error::from)
            .and_then(|event| frame::write(&*lock(to_client), Kind::Event, &event));
        if told.is_err() {
            // Nobody will see the rest. Its end is still waited for.
            cancel.cancel();
        }
    }
    execution.wait().map(drop).map_err(not_executed)
}

/// Hears what the client says until it says no more, which means that it wants no more.
fn listen(stream: &UnixStream, pieces: Sender<Vec<u8>>, cancel: CancelToken) -> io::Result<()> {
    let stream = stream.try_clone()?;
    let listen = move || {
        while let Ok(Some((Kind::Input, piece))) = frame::read(&stream) {
            // A program that has ended reads no more.
            let _ = pieces.send(piece);
        }
        cancel.cancel();
    };
    thread::Builder::new().name("listen".to_owned()).spawn(listen)?;
    Ok(())
}

fn lock(stream: &Mutex<UnixStream>) -> std::sync::MutexGuard<'_, UnixStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}
