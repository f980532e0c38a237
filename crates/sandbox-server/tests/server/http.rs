//! A minimal HTTP client with one request for each connection.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Exceeds the time of any response on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends a request. `None` if the server ends before it responds.
pub(crate) fn try_send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<Response> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("the time is not zero");
    send_on(stream, &address.to_string(), method, path, headers, body)
}

/// Sends a request over a Unix socket. `None` if the server ends before it responds.
pub(crate) fn try_send_to_socket(
    socket: &Path,
    method: &str,
    path: &str,
    body: &str,
) -> Option<Response> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("the time is not zero");
    send_on(stream, "localhost", method, path, &[], body)
}

fn send_on(
    mut stream: impl Read + Write,
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<Response> {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    request.push_str(body);
    stream.write_all(request.as_bytes()).ok()?;
    read(BufReader::new(stream))
}

fn read(mut stream: BufReader<impl Read>) -> Option<Response> {
    let status = line(&mut stream)?.split(' ').nth(1)?.parse().ok()?;
    let mut is_chunked = false;
    loop {
        let header = line(&mut stream)?.to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        is_chunked |= header == "transfer-encoding: chunked";
    }
    let mut body = Vec::new();
    if is_chunked {
        while let size @ 1.. = usize::from_str_radix(&line(&mut stream)?, 16).ok()? {
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).ok()?;
            line(&mut stream)?;
        }
    } else {
        stream.read_to_end(&mut body).ok()?;
    }
    Some(Response { status, body: String::from_utf8(body).expect("the server answers in UTF-8") })
}

fn line(stream: &mut BufReader<impl Read>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
