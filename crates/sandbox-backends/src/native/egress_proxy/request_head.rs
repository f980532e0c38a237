//! The head of an HTTP request to the proxy.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use sandbox_core::HostPort;

use super::stop::StopSignal;

/// Maximum size of a head.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Maximum time until the head is complete.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Headers about the connection to the proxy, which are not forwarded, and two that the proxy
/// writes itself.
const NOT_PASSED_ON: &[&str] =
    &["host", "connection", "proxy-connection", "keep-alive", "proxy-authorization", "upgrade"];

/// A request for a tunnel, or a plain request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestHead {
    /// `CONNECT host:port`.
    Tunnel(HostPort),
    /// `GET http://host/path` and the like.
    Plain {
        method: String,
        place: HostPort,
        path: String,
        /// Header lines to forward, each with its line end.
        headers: String,
    },
}

impl RequestHead {
    /// Reads a head and the bytes that follow it. The inner error is for the client.
    pub(super) fn receive(
        mut client: &TcpStream,
        stop: &StopSignal,
    ) -> io::Result<Result<(Self, Vec<u8>), &'static str>> {
        let deadline = Instant::now() + HEAD_TIMEOUT;
        let mut bytes = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            stop.wait(&[(client.as_fd(), PollFlags::IN)], left)?;
            let mut chunk = [0; 4096];
            let count = match client.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            bytes.extend_from_slice(&chunk[..count]);
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = bytes.split_off(end + 4);
                bytes.truncate(end);
                return Ok(Self::parse(&bytes).map(|head| (head, rest)));
            }
            if bytes.len() > MAX_HEAD_BYTES {
                return Ok(Err("the head of the request is too long"));
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the request is not plain text")?;
        let mut lines = text.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first[..] else {
            return Err("this is not a request of HTTP 1");
        };
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err("the method is not a word in capitals");
        }
        if method == "CONNECT" {
            let place = target.parse().map_err(|_| "a tunnel leads to a host and a port")?;
            return Ok(Self::Tunnel(place));
        }
        let rest = target.strip_prefix("http://").ok_or("a proxy is asked with a whole URL")?;
        let (host, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        let with_port = if host.rfind(':') > host.rfind(']') {
            host.parse()
        } else {
            format!("{host}:80").parse()
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self::Plain {
            method: method.to_owned(),
            place: with_port.map_err(|_| "the URL names no host")?,
            path: is_visible(&path)
                .then_some(path)
                .ok_or("the URL contains a control character")?,
            headers: headers(lines)?,
        })
    }

    /// The host to connect to.
    pub(super) fn place(&self) -> &HostPort {
        match self {
            Self::Tunnel(place) | Self::Plain { place, .. } => place,
        }
    }

    pub(super) fn is_tunnel(&self) -> bool {
        matches!(self, Self::Tunnel(_))
    }
}

/// The headers to forward, each with its line end.
fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<String, &'static str> {
    let mut kept = String::new();
    for line in lines {
        let (name, _) = line.split_once(':').ok_or("a header has no colon")?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) || !is_visible(line) {
            return Err("a header is not one");
        }
        if !NOT_PASSED_ON.iter().any(|unwanted| name.eq_ignore_ascii_case(unwanted)) {
            kept.push_str(line);
            kept.push_str("\r\n");
        }
    }
    Ok(kept)
}

fn is_visible(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() && character != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port() {
        let head =
            RequestHead::parse(b"CONNECT PyPI.org:443 HTTP/1.1\r\nHost: elsewhere:1").unwrap();
        assert_eq!(head, RequestHead::Tunnel("pypi.org:443".parse().unwrap()));
    }

    #[test]
    fn a_plain_request_keeps_what_is_for_the_server() {
        let head = RequestHead::parse(
            b"GET http://index:8080/simple/?a=b HTTP/1.1\r\nHost: other\r\nAccept: x\r\n\
              Proxy-Authorization: secret\r\nCONNECTION: keep-alive\r\nContent-Length: 2",
        );
        let RequestHead::Plain { method, place, path, headers } = head.unwrap() else {
            panic!("this is not a tunnel");
        };
        assert_eq!((method.as_str(), place.to_string().as_str()), ("GET", "index:8080"));
        assert_eq!(path, "/simple/?a=b");
        assert_eq!(headers, "Accept: x\r\nContent-Length: 2\r\n");
    }

    #[test]
    fn a_url_without_port_or_path_has_both() {
        for (url, place, path) in [
            ("http://index", "index:80", "/"),
            ("http://index?q", "index:80", "/?q"),
            ("http://[::1]/x", "[::1]:80", "/x"),
            ("http://[::1]:81/x", "[::1]:81", "/x"),
        ] {
            let head = RequestHead::parse(format!("GET {url} HTTP/1.1").as_bytes()).unwrap();
            let RequestHead::Plain { place: found, path: rest, .. } = head else {
                panic!("this is not a tunnel");
            };
            assert_eq!((found.to_string().as_str(), rest.as_str()), (place, path));
        }
    }

    #[test]
    fn anything_unclear_is_refused() {
        for text in [
            "",
            "GET / HTTP/1.1",
            "GET  http://a/ HTTP/1.1",
            "GET http://a/ HTTP/2",
            "GET http://user@a/ HTTP/1.1",
            "GET https://a/ HTTP/1.1",
            "GET http://a/\u{1} HTTP/1.1",
            "get http://a/ HTTP/1.1",
            "CONNECT a HTTP/1.1",
            "CONNECT a:443:80 HTTP/1.1",
            "CONNECT http://a:443 HTTP/1.1",
            "GET http://a/ HTTP/1.1\r\nno colon",
            "GET http://a/ HTTP/1.1\r\nA: b\nHost: c",
            "GET http://a/ HTTP/1.1\r\n Host: c",
        ] {
            assert!(RequestHead::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
