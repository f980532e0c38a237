//! A server for tests that says what it was told to say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use super::ServerUrl;
use super::http::Client;

/// What is done in answer to one request.
pub(super) enum Line {
    Say(String),
    /// Says no more until the client has hung up.
    WaitForTheClient,
}

/// Answers one connection after the other, each from its script, and then closes it.
pub(super) struct Canned {
    address: SocketAddr,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Canned {
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
    pub(super) fn heard(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Canned {
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
    let mut heard = String::new();
    while !heard.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut heard).unwrap(), 0, "cut off: {heard}");
    }
    let length = heard.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    heard.push_str(&String::from_utf8(body).unwrap());
    for line in lines {
        match line {
            // The client may have heard enough.
            Line::Say(text) => drop((&mut &*stream).write_all(text.as_bytes())),
            Line::WaitForTheClient => drop(reader.read(&mut [0])),
        }
    }
    heard
}
