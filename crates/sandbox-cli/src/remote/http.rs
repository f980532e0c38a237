//! A minimal HTTP/1.1 client for sandboxd: one request per connection, no redirects, no compression, and a maximum size
//! for every part of a response.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::thread;

use super::body::{Body, Chunk, Framing, line, wrong};
use super::clock::Timeouts;
use super::connection::{ClientError, Connection, Transport};
use crate::args::ServerArgs;
use crate::errors::Failure;
use crate::server_url::{ApiKey, ServerUrl};

/// A client of one server.
#[derive(Clone, Debug)]
pub(super) struct Client {
    url: ServerUrl,
    key: Option<ApiKey>,
    transport: Transport,
    timeouts: Timeouts,
}

/// A request without the parts that are the same in all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) method: &'static str,
    pub(super) resource: &'a str,
    pub(super) headers: &'a [(&'static str, &'a str)],
    pub(super) body: Option<&'a [u8]>,
}

/// A response whose head was read.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Body<Connection>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// Nothing was sent.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// The connection was there, and something became of it.
    #[error("the connection failed")]
    Lost(#[source] io::Error),
}

const MAX_HEAD_LINE_BYTES: u64 = 16 * 1024;
const MAX_HEADERS: usize = 128;
/// A report comes in one piece, with all that a program printed and left in files.
pub(super) const MAX_RESPONSE_BYTES: u64 = 256 << 20;

impl Client {
    /// A client for the server that --server names, if it was given.
    pub(super) fn from_args(args: &ServerArgs) -> Result<Option<Self>, Failure> {
        let Some(url) = &args.server else { return Ok(None) };
        let client = Self::new(url.clone(), args.api_key.clone());
        client.map(Some).map_err(|error| match error {
            ClientError::Key(error) => Failure::Usage(format!("--api-key: {error}")),
            #[cfg(feature = "https")]
            ClientError::Trust(error) => Failure::Internal(error.to_string()),
        })
    }

    pub(super) fn new(url: ServerUrl, key: Option<ApiKey>) -> Result<Self, ClientError> {
        if let Some(key) = &key {
            key.secret()?;
        }
        let transport = Transport::to(&url)?;
        Ok(Self { url, key, transport, timeouts: Timeouts::default() })
    }

    #[cfg(test)]
    pub(super) fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    pub(super) fn url(&self) -> &ServerUrl {
        &self.url
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Sends a request and reads the head of the answer.
    pub(super) fn call(&self, call: &Call<'_>) -> Result<Response, HttpError> {
        let connection = Connection::open(&self.url, &self.transport, self.timeouts);
        let connection = connection.map_err(HttpError::Connect)?;
        let mut connection = BufReader::new(connection);
        let sent = self.send(call, connection.get_mut());
        // A server may answer and hang up before it has read everything, for one that it refuses: then
        // its answer says more than our failure to send the rest.
        match (read_head(&mut connection), sent) {
            (Ok((status, framing)), _) => {
                Ok(Response { status, body: Body::new(connection, framing) })
            }
            (Err(_), Err(error)) | (Err(error), Ok(())) => Err(HttpError::Lost(error)),
        }
    }

    /// Sends a request that does no harm when it arrives twice, until there is an answer. A server that
    /// is not there, takes its time or makes no sense is not asked again.
    pub(super) fn call_again(&self, call: &Call<'_>, tries: u32) -> Result<Response, HttpError> {
        for attempt in 1..tries {
            match self.call(call) {
                Err(HttpError::Lost(error)) if is_break(&error) => self.pause_before(attempt),
                result => return result,
            }
        }
        self.call(call)
    }

    /// Waits before something is tried again, longer each time.
    pub(super) fn pause_before(&self, attempt: u32) {
        thread::sleep(self.timeouts.pause * (1 << attempt.saturating_sub(1).min(6)));
    }

    fn send(&self, call: &Call<'_>, connection: &mut Connection) -> io::Result<()> {
        let path = self.url.path(call.resource);
        let host = self.url.authority();
        let version = env!("CARGO_PKG_VERSION");
        let mut head = format!(
            "{} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sandbox-run/{version}\r\nConnection: close\r\n",
            call.method
        );
        let key = self.key.as_ref().and_then(|key| key.secret().ok());
        let bearer = key.map(|key| format!("Bearer {key}"));
        let length = call.body.map(|body| body.len().to_string());
        let own = [("Authorization", bearer.as_deref()), ("Content-Length", length.as_deref())];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (name, value) in call.headers.iter().copied().chain(own) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        connection.write_all(head.as_bytes())?;
        connection.write_all(call.body.unwrap_or_default())?;
        connection.flush()
    }
}

impl Response {
    /// The whole body.
    pub(super) fn whole(self) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        let mut body = self.body.take(MAX_RESPONSE_BYTES + 1);
        body.read_to_end(&mut bytes).map_err(HttpError::Lost)?;
        if bytes.len() as u64 > MAX_RESPONSE_BYTES {
            return Err(HttpError::Lost(wrong("more than 256M in it")));
        }
        Ok(bytes)
    }

    /// The body as it comes, for as long as something comes now and then.
    pub(super) fn stream(mut self) -> Body<Connection> {
        self.body.connection().without_deadline();
        self.body
    }
}

/// Whether the connection broke, rather than that what came over it was late or wrong.
fn is_break(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::InvalidData)
}

fn read_head(connection: &mut BufReader<Connection>) -> io::Result<(u16, Framing)> {
    loop {
        let status = read_status(&line(connection, MAX_HEAD_LINE_BYTES)?)?;
        let framing = read_headers(connection)?;
        match status {
            // Said in advance; the answer follows.
            100..=199 => {}
            204 | 304 => return Ok((status, Framing::Length(0))),
            _ => return Ok((status, framing)),
        }
    }
}

fn read_status(line: &str) -> io::Result<u16> {
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    status
        .filter(|status| (100..=599).contains(status))
        .ok_or_else(|| wrong("no HTTP status: is it a sandboxd?"))
}

fn read_headers(connection: &mut BufReader<Connection>) -> io::Result<Framing> {
    let mut framing = Framing::UntilClose;
    for _ in 0..MAX_HEADERS {
        let header = line(connection, MAX_HEAD_LINE_BYTES)?;
        if header.is_empty() {
            return Ok(framing);
        }
        let (name, value) = header.split_once(':').ok_or_else(|| wrong("a header without ':'"))?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(wrong("a transfer encoding that is not chunked"));
            }
            framing = Framing::Chunks(Chunk::Start);
        } else if name.eq_ignore_ascii_case("content-length") && framing == Framing::UntilClose {
            let length = value.parse().map_err(|_| wrong("a length that is no number"))?;
            framing = Framing::Length(length);
        }
    }
    Err(wrong("too many headers"))
}

#[cfg(test)]
mod tests {
    use super::super::test_server::{Line, TestServer};
    use super::*;
    use std::time::Duration;

    const GET: Call<'static> =
        Call { method: "GET", resource: "/api/v1/health", headers: &[], body: None };

    fn whole(answer: Vec<Line>) -> Result<(u16, String), HttpError> {
        let server = TestServer::new(vec![answer]);
        let answer = server.client().call(&GET)?;
        Ok((answer.status, String::from_utf8(answer.whole()?).unwrap()))
    }

    fn said(text: &str) -> Result<(u16, String), HttpError> {
        whole(vec![Line::Say(text.to_owned())])
    }

    #[test]
    fn answers_are_read_however_they_are_framed() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
            "HTTP/1.1 200\r\n\r\nhi",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        ] {
            assert_eq!(said(text).unwrap(), (200, "hi".to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_sent_is_a_request_with_the_key() {
        let server = TestServer::new(vec![vec![Line::Say("HTTP/1.1 204 No\r\n\r\n".into())]]);
        let key = Some(ApiKey::from("sk_1".to_owned()));
        let client = Client::new(server.url(), key).unwrap();
        let headers = &[("Accept", "x/y")];
        client.call(&Call { headers, body: Some(b"{}"), ..GET }).unwrap();
        let heard = server.requests().remove(0);
        assert!(heard.starts_with("GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:"), "{heard}");
        for part in ["\r\nAuthorization: Bearer sk_1\r\n", "\r\nAccept: x/y\r\n"] {
            assert!(heard.contains(part), "{heard}");
        }
        assert!(heard.ends_with("\r\nContent-Length: 2\r\n\r\n{}"), "{heard}");
    }

    #[test]
    fn what_is_no_http_is_said_to_be_none_and_bounds_hold() {
        let many = "A: b\r\n".repeat(200);
        let long = "a".repeat(20_000);
        for text in [
            "SSH-2.0-OpenSSH\r\n".to_owned(),
            "HTTP/1.1 999 x\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
            format!("HTTP/1.1 200 OK\r\nA: {long}\r\n\r\n"),
        ] {
            let Err(HttpError::Lost(error)) = said(&text) else { panic!("{text} was taken") };
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn a_server_that_says_nothing_or_too_little_is_not_waited_for_for_ever() {
        for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
            let server = TestServer::new(vec![vec![
                Line::Say(beginning.to_owned()),
                Line::WaitForTheClient,
            ]]);
            let timeouts = Timeouts { answer: Duration::from_millis(100), ..Timeouts::default() };
            let client = server.client().with_timeouts(timeouts);
            let result = client.call(&GET).and_then(Response::whole);
            let Err(HttpError::Lost(error)) = result else { panic!("{result:?}") };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[test]
    fn nobody_there_is_another_failure_than_somebody_who_leaves() {
        let server = TestServer::new(vec![vec![]]);
        let client = server.client();
        assert!(matches!(client.call(&GET), Err(HttpError::Lost(_))));
        drop(server);
        assert!(matches!(client.call(&GET), Err(HttpError::Connect(_))));
    }
}
