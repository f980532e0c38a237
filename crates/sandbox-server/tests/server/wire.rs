//! A connection byte by byte, for clients that do not keep to the rules.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use crate::server::{SOON, Server};

pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(SOON)).expect("the time is not zero");
        stream.set_write_timeout(Some(SOON)).expect("the time is not zero");
        Self(stream)
    }

    pub(crate) fn with(server: &Server, bytes: impl AsRef<[u8]>) -> Self {
        let mut wire = Self::to(server);
        wire.send(bytes).expect("the server reads");
        wire
    }

    /// Sends, unless the server has heard enough.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())
    }

    /// Says that no more will be sent.
    pub(crate) fn end(&self) {
        self.0.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Everything that the server says until it hangs up, which it must, and soon.
    #[track_caller]
    pub(crate) fn until_closed(&mut self) -> String {
        let (mut heard, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        let deadline = Instant::now() + SOON;
        while Instant::now() < deadline {
            match self.0.read(&mut piece) {
                Ok(0) => return lossy(&heard),
                Ok(count) => heard.extend_from_slice(&piece[..count]),
                // Hanging up on somebody who is still talking is a reset.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return lossy(&heard);
                }
                Err(error) => panic!("it was not closed: {error}: {}", lossy(&heard)),
            }
        }
        panic!("it was not closed: {}", lossy(&heard));
    }

    /// What the server says until these bytes have come.
    #[track_caller]
    pub(crate) fn until(&mut self, end: &str) -> String {
        let (mut heard, mut byte) = (Vec::new(), [0]);
        while !heard.ends_with(end.as_bytes()) {
            let read = self.0.read_exact(&mut byte);
            read.unwrap_or_else(|error| panic!("{error}: {}", lossy(&heard)));
            heard.push(byte[0]);
        }
        lossy(&heard)
    }
}

/// The head and the beginning of a request that is to be continued.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n{body}"
    )
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
