//! The program's standard input.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::pipe::{PipeFlags, pipe_with};
use sandbox_core::{BackendError, Stdin};

use super::failed;

/// A descriptor to read the input from. Nothing of the host can be reached through it: bytes travel
/// in a sealed memory file, and a reader is pumped through a pipe rather than handed over.
///
/// `owner` is the program's id outside, if it has one of its own: it may then also open the input by
/// name (`/dev/stdin`), as programs do.
pub(crate) fn open(stdin: &Stdin, owner: Option<u32>) -> Result<OwnedFd, BackendError> {
    let input = match stdin {
        Stdin::Empty => {
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| failed("open an empty input", error))
        }
        Stdin::Bytes(bytes) => sandbox_linux::sealed_memory(bytes)
            .map_err(|error| failed("place the standard input", error)),
        Stdin::Reader(reader) => {
            let reader = reader.lock().ok().and_then(|mut reader| reader.take());
            let reader = reader.ok_or_else(|| {
                BackendError::Refused("the standard input was already read by another stage".into())
            })?;
            pump(reader)
        }
    }?;
    if let (Some(owner), Stdin::Reader(_)) = (owner, stdin) {
        let (user, group) = (Uid::from_raw(owner), Gid::from_raw(owner));
        rustix::fs::fchown(&input, Some(user), Some(group))
            .map_err(|error| failed("give the input to the program", error))?;
    }
    Ok(input)
}

/// Copies from the reader to a pipe on a thread of its own. The thread ends at the end of the input,
/// or when nobody reads any more; until then it may wait in the reader, which only its owner can end.
fn pump(mut reader: Box<dyn Read + Send>) -> Result<OwnedFd, BackendError> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| failed("make a pipe for the input", error))?;
    let copy = move || {
        let mut input = std::fs::File::from(input);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if input.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    std::thread::Builder::new()
        .name("sandbox-stdin".to_owned())
        .spawn(copy)
        .map_err(|error| failed("start a thread for the input", error))?;
    Ok(output)
}
