//! Serves one client of the helper.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

use sandbox::{CancelToken, ExecuteError, LanguageChoice, Stdin};

use super::frame::{self, Kind};
use super::helper::Helper;
use super::input::RemoteInput;
use super::message::{HelperRequest, Order, REPLY_TIMEOUT, Reply, recv, send};
use super::peer::{Peer, peer};
use super::shared_sandbox::SharedSandbox;
use crate::errors::Failure;

/// Answers one question. What goes wrong with the connection is the client's to notice.
pub(super) fn handle_connection(helper: &Helper, stream: UnixStream) {
    let is_own = peer(&stream).is_ok_and(|peer| peer == Peer::Own);
    if !is_own || stream.set_read_timeout(Some(REPLY_TIMEOUT)).is_err() {
        return;
    }
    match recv(&stream) {
        Ok(Some(HelperRequest::Execute(order))) => {
            let _ = files(&stream, order.asked.files.len())
                .and_then(|files| execute(helper, &stream, *order, files));
            let _ = stream.shutdown(Shutdown::Both);
        }
        Ok(Some(HelperRequest::Status)) => {
            let _ = send(&stream, &Reply::Status(helper.status()));
        }
        Ok(Some(HelperRequest::Go)) => {
            if send(&stream, &Reply::Going(helper.leave())).is_ok() {
                helper.close_at_end(stream);
            }
        }
        // Somebody who has nothing to ask, or asks in the words of another version.
        Ok(None) => {}
        Err(_) => drop(send(&stream, &Reply::Differs)),
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
    let is_same = order.executable == helper.executable && order.context == helper.context.as_str();
    if !is_same {
        return send(stream, &Reply::Differs);
    }
    let kept = match &helper.kept {
        Ok(kept) => kept,
        Err(reason) => {
            let said = send(stream, &Reply::NoSandbox(reason.clone()));
            helper.leave();
            return said;
        }
    };
    // Hanging up before it is taken tells the client to look for another one.
    let Some(running) = helper.activity.begin(order.idle) else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let to_client = Arc::new(Mutex::new(stream.try_clone()?));
    send(stream, &Reply::Taken)?;
    let said = match carry_out(kept, stream, &to_client, order, files) {
        Ok(()) => Ok(()),
        Err(failure) => send(&*lock(&to_client), &Reply::from(failure)),
    };
    // The sandbox was given back and all is said before it counts as done.
    drop(running);
    said
}

fn carry_out(
    kept: &SharedSandbox,
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
        SharedSandbox::without_cache()?
    } else {
        kept.sandbox(&language, &order.runtime)?
    };
    let mut execution = sandbox.start(request).map_err(Failure::from)?;
    let cancel = execution.cancel_token();
    listen(stream, pieces, cancel.clone())
        .map_err(|error| Failure::from(ExecuteError::Thread(error)))?;
    for event in execution.events() {
        let told = serde_json::to_vec(&event)
            .map_err(io::Error::from)
            .and_then(|event| frame::write(&*lock(to_client), Kind::Event, &event));
        if told.is_err() {
            // Nobody will see the rest. Its end is still waited for.
            cancel.cancel();
        }
    }
    execution.wait().map(drop).map_err(Failure::from)
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
