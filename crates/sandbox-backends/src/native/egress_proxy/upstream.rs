//! Connects to a host: directly, or through the proxy that the host has to use.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sandbox_core::{EgressProxy, HostPort, HostProxy};

use super::relay;
use super::request_head::RequestHead;
use super::stop::StopSignal;

/// Maximum time to connect to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time for the host's proxy to open a tunnel.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a proxy's response to a tunnel request.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// Connects to the requested host, up to the point where bytes are only relayed: a tunnel is open,
/// or a plain request has been forwarded.
pub(super) fn connect(
    head: &RequestHead,
    rest: &[u8],
    egress_proxy: &EgressProxy,
    stop: &StopSignal,
) -> io::Result<TcpStream> {
    let proxy = match head {
        _ if egress_proxy.proxies.is_direct(head.place()) => None,
        RequestHead::Tunnel(_) => egress_proxy.proxies.tunnel.as_ref(),
        RequestHead::Plain { .. } => egress_proxy.proxies.plain.as_ref(),
    };
    let server = reach(proxy.map_or(head.place(), |proxy| &proxy.place), stop)?;
    match head {
        RequestHead::Tunnel(place) => {
            if let Some(proxy) = proxy {
                ask_for_tunnel(&server, place, proxy, stop)?;
            }
        }
        RequestHead::Plain { method, place, path, headers } => {
            // One request per connection: the next one may be for another host.
            let target = proxy.map_or(String::new(), |_| format!("http://{place}"));
            let login = proxy.map(authorization).unwrap_or_default();
            let text = format!(
                "{method} {target}{path} HTTP/1.1\r\nHost: {place}\r\n{headers}{login}\
                 Connection: close\r\n\r\n"
            );
            relay::send(&server, stop, text.as_bytes())?;
            relay::send(&server, stop, rest)?;
        }
    }
    Ok(server)
}

/// Resolves the host and connects to the first address that works.
fn reach(place: &HostPort, stop: &StopSignal) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in (place.host(), place.port()).to_socket_addrs()? {
        match reach_address(address, stop) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionAborted => last = error,
            other => return other,
        }
    }
    Err(last)
}

fn reach_address(address: SocketAddr, stop: &StopSignal) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            stop.wait(&[(socket.as_fd(), PollFlags::OUT)], CONNECT_TIMEOUT)?;
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(TcpStream::from(socket))
}

fn ask_for_tunnel(
    server: &TcpStream,
    place: &HostPort,
    proxy: &HostProxy,
    stop: &StopSignal,
) -> io::Result<()> {
    let login = authorization(proxy);
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n");
    relay::send(server, stop, request.as_bytes())?;
    let answer = read_head(server, stop)?;
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!("the host's proxy {} says: {status}", proxy.place))),
    }
}

/// Reads up to the empty line and no further: the rest belongs to the tunnel.
fn read_head(mut server: &TcpStream, stop: &StopSignal) -> io::Result<String> {
    let deadline = Instant::now() + TUNNEL_TIMEOUT;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        stop.wait(&[(server.as_fd(), PollFlags::IN)], left)?;
        let mut byte = [0];
        match server.read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if head.len() > MAX_RESPONSE_BYTES {
            return Err(io::Error::other("the host's proxy answers at too great a length"));
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn authorization(proxy: &HostProxy) -> String {
    let header = |login| format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(login));
    proxy.login.as_ref().map(header).unwrap_or_default()
}
