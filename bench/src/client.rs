//! An HTTP client of one connection that is kept, so small that its own cost can be neglected: one write
//! for a request that was put together before, and as few reads as the kernel allows. `sandbox-client` connects for
//! each request and hands it to a thread of its own: that would be measured too.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Error, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes that will still come.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);
/// The server's answers to small programs fit in it.
const BUFFER: usize = 16 << 10;

/// A kernel without preemption leaves the CPU to nobody else during a write, in which loopback also does the receiver's
/// part.
const MAX_WRITE: usize = 64 << 10;

/// A connection that is made again when the server has closed it.
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// How long the body of an answer is, and what becomes of the connection.
#[derive(Default)]
struct Head {
    status: u16,
    length: usize,
    is_chunked: bool,
    is_last: bool,
}

/// A request as it goes over the wire.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    if !body.is_empty() {
        let _ = write!(head, "Content-Length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| *name != "content-type") {
            head.push_str("Content-Type: application/json\r\n");
        }
    }
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

impl Client {
    /// Connects with the first request.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    pub(crate) fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let mut client = Self::new(address);
        client.stream = Some(client.open()?);
        Ok(client)
    }

    /// Sends a request and reads its answer. After an error the connection is a new one.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> std::io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.open()?,
        };
        for part in request.chunks(MAX_WRITE) {
            stream.get_mut().write_all(part)?;
        }
        let head = read_head(&mut stream)?;
        let body = read_body(&mut stream, &head)?;
        if !head.is_last {
            self.stream = Some(stream);
        }
        Ok(Answer { status: head.status, body })
    }

    fn open(&self) -> std::io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.address)?;
        // A request is one write, which has to leave at once.
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(BufReader::with_capacity(BUFFER, stream))
    }
}

fn read_head(stream: &mut BufReader<TcpStream>) -> std::io::Result<Head> {
    let mut head = Head::default();
    let first = read_line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    head.status = status.ok_or_else(|| invalid("not a status", &first))?;
    loop {
        let line = read_line(stream)?.to_ascii_lowercase();
        let Some((name, value)) = line.split_once(':') else {
            return Ok(head);
        };
        match (name, value.trim()) {
            ("content-length", value) => {
                head.length = value.parse().map_err(|_| invalid("not a length", value))?;
            }
            ("transfer-encoding", "chunked") => head.is_chunked = true,
            ("connection", "close") => head.is_last = true,
            _ => {}
        }
    }
}

fn read_body(stream: &mut BufReader<TcpStream>, head: &Head) -> std::io::Result<Vec<u8>> {
    if head.is_chunked {
        return read_chunks(stream);
    }
    let mut body = vec![0; head.length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(stream: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?;
        let size = usize::from_str_radix(&line, 16).map_err(|_| invalid("not a size", &line))?;
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..])?;
        read_line(stream)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read_line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn invalid(what: &str, text: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("{what}: '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers each request of one connection with the next of these, and then closes it.
    fn serve(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it has an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client comes");
            for answer in answers {
                // Requests end with an empty line here.
                let mut request = BufReader::new(&stream);
                while request.read_line(&mut String::new()).expect("the client sends") > 2 {}
                stream.write_all(answer.as_bytes()).expect("the client reads");
            }
        });
        address
    }

    #[test]
    fn answers_follow_each_other_on_one_connection() {
        let address = serve(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
        ]);
        let mut client = Client::connect(address).expect("the server listens");
        let request = request("GET", "/", &[], b"");
        let mut next = || {
            let answer = client.exchange(&request).expect("the server answers");
            (answer.status, String::from_utf8(answer.body).expect("it is text"))
        };
        assert_eq!(next(), (200, "hello".to_owned()));
        assert_eq!(next(), (404, "abcd".to_owned()));
        assert_eq!(next(), (204, String::new()));
        assert!(client.stream.is_none(), "a connection that the server closes is not used again");
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        for answer in ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "what?\r\n\r\n"] {
            let answers = Box::leak(Box::new([answer]));
            let mut client = Client::connect(serve(answers)).expect("the server listens");
            assert!(client.exchange(b"GET / HTTP/1.1\r\n\r\n").is_err(), "{answer}");
        }
    }
}
