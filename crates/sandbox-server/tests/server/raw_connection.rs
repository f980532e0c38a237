//! A TCP connection without an HTTP client, for tests that violate the protocol.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use crate::server_process::{Server, WAIT_TIMEOUT};

pub(crate) struct RawConnection(TcpStream);

impl RawConnection {
    pub(crate) fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("the time is not zero");
        stream.set_write_timeout(Some(WAIT_TIMEOUT)).expect("the time is not zero");
        Self(stream)
    }

    pub(crate) fn with(server: &Server, bytes: impl AsRef<[u8]>) -> Self {
        let mut connection = Self::open(server);
        connection.send(bytes).expect("the server reads");
        connection
    }

    /// Sends bytes. Fails if the server has closed the connection.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())
    }

    /// Shuts down the sending direction.
    pub(crate) fn shut_down(&self) {
        self.0.shutdown(Shutdown::Write).expect("the connection is open");
    }

    /// Everything that the server sends until it closes the connection. Panics if it does not close it in time.
    #[track_caller]
    pub(crate) fn until_closed(&mut self) -> String {
        let (mut received, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while Instant::now() < deadline {
            match self.0.read(&mut chunk) {
                Ok(0) => return lossy(&received),
                Ok(count) => received.extend_from_slice(&chunk[..count]),
                // Closing a connection with unread data sends a reset.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return lossy(&received);
                }
                Err(error) => panic!("it was not closed: {error}: {}", lossy(&received)),
            }
        }
        panic!("it was not closed: {}", lossy(&received));
    }

    /// What the server sends up to these bytes.
    #[track_caller]
    pub(crate) fn until(&mut self, end: &str) -> String {
        let (mut received, mut byte) = (Vec::new(), [0]);
        while !received.ends_with(end.as_bytes()) {
            let read = self.0.read_exact(&mut byte);
            read.unwrap_or_else(|error| panic!("{error}: {}", lossy(&received)));
            received.push(byte[0]);
        }
        lossy(&received)
    }
}

/// A POST request, whose body may be incomplete.
pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}\r\n{body}"
    )
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
