//! The channel to the supervisor: frames on standard input and output, and failures by step.

use std::io::{self, Read as _};

use sandbox_protocol::agent::AgentEvent;
use sandbox_protocol::frame;
use sandbox_protocol::notice::StepFailure;

/// Names the step that an operation belongs to.
pub(crate) trait AtStep<T> {
    fn at(self, step: &str) -> Result<T, StepFailure>;
}

impl<T> AtStep<T> for io::Result<T> {
    fn at(self, step: &str) -> Result<T, StepFailure> {
        self.map_err(|error| StepFailure {
            step: step.to_owned(),
            errno: error.raw_os_error().unwrap_or(0),
        })
    }
}

/// Sends one event to the supervisor.
pub(crate) fn send(output: &mut impl io::Write, event: &AgentEvent<'_>) -> io::Result<()> {
    output.write_all(&frame::encode(event).map_err(io::Error::other)?)
}

/// Receives one request, still encoded, and blocks until it is complete. None at the end of the stream.
pub(crate) fn receive(input: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
    const INITIAL_CAPACITY: usize = 64 * 1024;
    let mut header = [0; frame::HEADER_BYTES];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let length = frame::length(header, frame::MAX_FRAME_BYTES).map_err(io::Error::other)?;
    let mut request = Vec::with_capacity(length.min(INITIAL_CAPACITY));
    input.take(length as u64).read_to_end(&mut request)?;
    if request.len() < length {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(Some(request))
    }
}

/// An error for a message from the supervisor that does not belong here.
pub(crate) fn unexpected() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use sandbox_protocol::Message as _;
    use sandbox_protocol::agent::AgentRequest;

    use super::*;

    #[test]
    fn requests_are_received_one_by_one_up_to_the_end() {
        let [first, second] = [AgentRequest::Stdin(b"abc"), AgentRequest::StdinEnd];
        let stream = [frame::encode(&first).unwrap(), frame::encode(&second).unwrap()].concat();
        let mut rest = stream.as_slice();
        for request in [first, second] {
            assert_eq!(receive(&mut rest).unwrap(), Some(request.encode()));
        }
        assert_eq!(receive(&mut rest).unwrap(), None);
        let error = receive(&mut &stream[..6]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(receive(&mut &[0xff; 4][..]).is_err());
    }

    #[test]
    fn a_failure_has_the_step_and_the_errors_number() {
        let failed: io::Result<()> = Err(io::Error::from_raw_os_error(13));
        let failure = StepFailure { step: "open it".to_owned(), errno: 13 };
        assert_eq!(failed.at("open it"), Err(failure));
        let failure = StepFailure { step: "decode it".to_owned(), errno: 0 };
        assert_eq!(Err::<(), _>(unexpected()).at("decode it"), Err(failure));
    }
}
