//! Standard input of a program on a server: read and sent while the program runs.

use std::io::{Cursor, ErrorKind, Read};
use std::sync::PoisonError;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use sandbox::{CancelToken, Stdin};
use sandbox_client::{Client, Error};

use crate::errors::Failure;

pub(super) type Input = Box<dyn Read + Send>;

/// An input that ends where it cannot be read, as that of a program on this host does.
struct UntilError(Input);

impl Read for UntilError {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Ok(0),
            result => result,
        }
    }
}

/// The input to send; none if it is empty.
pub(super) fn input(stdin: &Stdin) -> Option<Input> {
    match stdin {
        Stdin::Empty => None,
        Stdin::Bytes(bytes) => Some(Box::new(Cursor::new(bytes.clone()))),
        Stdin::Reader(reader) => reader.lock().unwrap_or_else(PoisonError::into_inner).take(),
    }
}

/// Sends it on a thread, which may wait in a read for longer than the execution lasts and ends with this process. If the
/// input cannot be sent, cancels the execution and returns the reason.
pub(super) fn send(
    client: Client,
    id: String,
    input: Input,
    cancel: CancelToken,
) -> Result<Receiver<Error>, Failure> {
    let (sender, failure) = mpsc::channel();
    let send = move || {
        if let Err(error) = client.send_stdin(&id, UntilError(input)) {
            // Before the report that follows from it.
            let _ = sender.send(error);
            cancel.cancel();
        }
    };
    let started = thread::Builder::new().name("stdin".to_owned()).spawn(send);
    started.map_err(|error| Failure::thread(&error))?;
    Ok(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails;

    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(ErrorKind::PermissionDenied.into())
        }
    }

    #[test]
    fn an_input_is_taken_once_and_ends_where_it_cannot_be_read() {
        assert!(input(&Stdin::Empty).is_none());
        let reader = Stdin::from_reader(b"some ".chain(Fails));
        let mut text = String::new();
        UntilError(input(&reader).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "some ");
        assert!(input(&reader).is_none());
    }
}
