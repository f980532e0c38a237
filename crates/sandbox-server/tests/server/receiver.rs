//! A receiver of callbacks. The test responds to each one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use sandbox_tests::wait::wait_for;
use serde_json::{Map, Value};

use crate::server_process::WAIT_TIMEOUT;

pub(crate) struct Receiver {
    listener: TcpListener,
}

/// A callback without a response yet.
pub(crate) struct Received {
    pub(crate) headers: Map<String, Value>,
    pub(crate) body: String,
    stream: TcpStream,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.listener.local_addr().expect("it is bound"))
    }

    /// Waits for the next callback.
    pub(crate) fn next(&self) -> Received {
        let accepted = wait_for(WAIT_TIMEOUT, || self.listener.accept().ok());
        let (stream, _) = accepted.expect("a callback comes");
        stream.set_nonblocking(false).expect("a socket can be made blocking");
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("the time is not zero");
        let mut reader = BufReader::new(stream);
        let mut lines = reader.by_ref().lines().map(|line| line.expect("a head is text"));
        assert!(lines.next().is_some_and(|line| line.starts_with("POST / ")));
        let mut headers = Map::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect("a header has a name and a value");
            headers.insert(name.to_ascii_lowercase(), value.into());
        }
        let length = headers["content-length"].as_str().and_then(|length| length.parse().ok());
        let mut body = vec![0; length.expect("the length is a number")];
        reader.read_exact(&mut body).expect("the body comes whole");
        let body = String::from_utf8(body).expect("a body is text");
        Received { headers, body, stream: reader.into_inner() }
    }
}

impl Received {
    pub(crate) fn id(&self) -> &str {
        self.headers["webhook-id"].as_str().expect("an id is text")
    }

    pub(crate) fn respond(mut self, status: &str) {
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        self.stream.write_all(response.as_bytes()).expect("the server waits for it");
    }
}
