//! A scripted HTTP server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sandbox_client::{ApiKey, Client, ServerUrl, Timeouts};

/// A step of a script.
pub(crate) enum Step {
    /// Reads the head and the body of a request.
    Receive,
    /// Reads the head of a request only.
    ReceiveHead,
    Send(String),
    /// Reads until the client has closed the connection.
    AwaitClose,
    /// The same after closing the direction to the client, as sandboxd ends a connection.
    Linger,
}

/// Serves one connection after the other, each by its script, and then closes it.
pub(crate) struct ScriptedServer {
    address: SocketAddr,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl ScriptedServer {
    /// A server that receives a request before each of these scripts.
    pub(crate) fn new(scripts: Vec<Vec<Step>>) -> Self {
        let receive = |steps| std::iter::once(Step::Receive).chain(steps).collect();
        Self::exactly(scripts.into_iter().map(receive).collect())
    }

    pub(crate) fn exactly(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let scripts = scripts.into_iter();
            scripts.map(|steps| follow(&listener.accept().unwrap().0, steps)).collect()
        };
        Self { address, thread: Some(thread::spawn(serve)) }
    }

    pub(crate) fn url(&self) -> ServerUrl {
        format!("http://{}", self.address).parse().unwrap()
    }

    /// A client that retries soon.
    pub(crate) fn client(&self) -> Client {
        self.client_with(Timeouts::default())
    }

    pub(crate) fn client_with(&self, timeouts: Timeouts) -> Client {
        let timeouts = Timeouts { retry_delay: Duration::from_millis(1), ..timeouts };
        let key = ApiKey::from("sk_1".to_owned());
        Client::with_timeouts(self.url(), Some(&key), timeouts).unwrap()
    }

    /// The requests, once all scripts have ended.
    pub(crate) fn requests(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && !thread::panicking()
        {
            thread.join().unwrap();
        }
    }
}

fn follow(stream: &TcpStream, steps: Vec<Step>) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    for step in steps {
        match step {
            Step::Receive => {
                receive_head(&mut reader, &mut request);
                let length = request.lines().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                reader.read_exact(&mut body).unwrap();
                request.push_str(&String::from_utf8(body).unwrap());
            }
            Step::ReceiveHead => receive_head(&mut reader, &mut request),
            // The client may have closed the connection.
            Step::Send(text) => drop((&mut &*stream).write_all(text.as_bytes())),
            Step::AwaitClose => drain(&mut reader),
            Step::Linger => {
                stream.shutdown(Shutdown::Write).unwrap();
                drain(&mut reader);
            }
        }
    }
    request
}

/// Resets of the connection count as its end.
fn drain(reader: &mut impl Read) {
    let _ = io::copy(reader, &mut io::sink());
}

fn receive_head(reader: &mut impl BufRead, request: &mut String) {
    while !request.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(request).unwrap(), 0, "cut off: {request}");
    }
}

pub(crate) fn send(text: impl Into<String>) -> Step {
    Step::Send(text.into())
}

/// A complete response.
pub(crate) fn response(status: &str, body: &str) -> Vec<Step> {
    vec![send(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))]
}
