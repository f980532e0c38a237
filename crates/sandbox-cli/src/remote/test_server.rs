//! A scripted HTTP server for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use super::http::Client;
use crate::server_url::ServerUrl;

/// What is done in answer to one request.
pub(super) enum Line {
    Say(String),
    /// Says no more until the client has hung up.
    WaitForTheClient,
}

/// Answers one connection after the other, each from its script, and then closes it.
pub(super) struct TestServer {
    address: SocketAddr,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl TestServer {
    pub(super) fn new(answers: Vec<Vec<Line>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let answers = answers.into_iter();
            answers.map(|lines| answer(&listener.accept().unwrap().0, lines)).collect()
        };
        Self { address, thread: Some(thread::spawn(serve)) }
    }

    pub(super) fn url(&self) -> ServerUrl {
        format!("http://{}", self.address).parse().unwrap()
    }

    pub(super) fn client(&self) -> Client {
        Client::new(self.url(), None).unwrap()
    }

    /// The requests, when all were made.
    pub(super) fn requests(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && !thread::panicking()
        {
            thread.join().unwrap();
        }
    }
}

fn answer(stream: &TcpStream, lines: Vec<Line>) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut request).unwrap(), 0, "cut off: {request}");
    }
    let length = request.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    request.push_str(&String::from_utf8(body).unwrap());
    for line in lines {
        match line {
            // The client may have request enough.
            Line::Say(text) => drop((&mut &*stream).write_all(text.as_bytes())),
            Line::WaitForTheClient => drop(reader.read(&mut [0])),
        }
    }
    request
}
