//! A client of event streams that can resume.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tokio_tungstenite::tungstenite::{Message, connect};

use crate::http::TEST_TIMEOUT;
use crate::server_process::Server;

/// An open stream of server-sent events.
pub(crate) struct EventStream {
    stream: BufReader<TcpStream>,
    /// Received data that is not parsed yet.
    buffer: String,
}

impl EventStream {
    /// Opens the stream of an execution, after the event `after`. `None` if there are no further events (204).
    pub(crate) fn open(server: &Server, id: &str, after: Option<u64>) -> Option<Self> {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("the time is not zero");
        let resumed = after.map_or(String::new(), |seq| format!("Last-Event-ID: {seq}\r\n"));
        let request = format!(
            "GET /api/v1/execute/{id}/stream HTTP/1.1\r\nHost: localhost\r\n\
             Accept: text/event-stream\r\n{resumed}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut stream = BufReader::new(stream);
        let status = read_line(&mut stream).expect("the server answers");
        if status.starts_with("HTTP/1.1 204") {
            return None;
        }
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while read_line(&mut stream).is_some_and(|header| !header.is_empty()) {}
        Some(Self { stream, buffer: String::new() })
    }

    /// The next event. `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                let data = data.map(|data| serde_json::from_str(data).expect("events are JSON"));
                self.buffer = rest.to_owned();
                // A comment without data keeps the connection alive.
                if data.is_some() {
                    return data;
                }
            }
            self.read_chunk()?;
        }
    }

    /// The next event, if it arrives within this time. After a timeout, the stream is unusable.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<Value> {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("the time is not zero");
        self.next()
    }

    /// Reads until an event matches. Panics at the end of the stream.
    pub(crate) fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            let is_last = matches(&event);
            events.push(event);
            if is_last {
                return events;
            }
        }
        panic!("the stream ended with {events:#?}");
    }

    fn read_chunk(&mut self) -> Option<()> {
        let size = usize::from_str_radix(&read_line(&mut self.stream)?, 16).ok()?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).ok()?;
        read_line(&mut self.stream)?;
        self.buffer.push_str(std::str::from_utf8(&chunk).expect("a chunk is a whole event"));
        (size > 0).then_some(())
    }
}

/// A line without its line feed. `None` at the end of the stream.
fn read_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

/// The protocol of an event stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    ServerSent,
    WebSocket,
}

/// The events after `after`, to the end of the stream.
pub(crate) fn resume(server: &Server, id: &str, after: u64, protocol: Protocol) -> Vec<Value> {
    match protocol {
        Protocol::ServerSent => {
            let stream = EventStream::open(server, id, Some(after));
            stream.map_or(Vec::new(), |mut stream| std::iter::from_fn(|| stream.next()).collect())
        }
        Protocol::WebSocket => {
            let from = after + 1;
            let url = format!("ws://{}/api/v1/execute/{id}/stream?from={from}", server.address);
            let (mut socket, _) = connect(url).expect("the server takes web sockets");
            let messages = std::iter::from_fn(|| socket.read().ok());
            let texts = messages.filter_map(|message| match message {
                Message::Text(text) => Some(text),
                _ => None,
            });
            texts.map(|text| serde_json::from_str(&text).expect("events are JSON")).collect()
        }
    }
}

pub(crate) fn number(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap_or_else(|| panic!("{event} has no number"))
}

pub(crate) fn last(events: &[Value]) -> u64 {
    events.last().map_or(0, number)
}

pub(crate) fn printed(events: &[Value], stream: &str) -> String {
    let pieces = events.iter().filter(|event| event["type"] == stream);
    pieces.map(|event| event["data"].as_str().expect("output is text here")).collect()
}

pub(crate) fn assert_ends_with_report(server: &Server, id: &str, events: &[Value]) {
    let end = events.last().expect("there are events");
    assert_eq!(end["type"], "report", "{events:#?}");
    assert_eq!(end["report"], server.get(&format!("/api/v1/execute/{id}")).json());
    assert_eq!(end["report"]["status"], "completed", "{end}");
}
