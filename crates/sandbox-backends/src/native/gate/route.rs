//! From the gate to a place: directly, or through the proxy that the host itself has to use.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sandbox_core::{Gate, HostPort, HostProxy};

use super::closing::Closing;
use super::head::Head;
use super::relay;

/// Until one address of a host answers.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// Until the host's proxy has made a tunnel.
const TUNNEL_TIME: Duration = Duration::from_secs(30);
/// A proxy's answer to a request for a tunnel is shorter.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// Connects to where the client wants to get, up to the point from which bytes are only relayed: a
/// tunnel stands, or a plain request is on its way with what came after its head.
pub(super) fn connect(
    head: &Head,
    rest: &[u8],
    gate: &Gate,
    closing: &Closing,
) -> io::Result<TcpStream> {
    let proxy = match head {
        _ if gate.proxies.is_direct(head.place()) => None,
        Head::Tunnel(_) => gate.proxies.tunnel.as_ref(),
        Head::Plain { .. } => gate.proxies.plain.as_ref(),
    };
    let server = reach(proxy.map_or(head.place(), |proxy| &proxy.place), closing)?;
    match head {
        Head::Tunnel(place) => {
            if let Some(proxy) = proxy {
                ask_for_tunnel(&server, place, proxy, closing)?;
            }
        }
        Head::Plain { method, place, path, headers } => {
            // One request on each connection: the next one may be for another place.
            let target = proxy.map_or(String::new(), |_| format!("http://{place}"));
            let login = proxy.map(authorization).unwrap_or_default();
            let text = format!(
                "{method} {target}{path} HTTP/1.1\r\nHost: {place}\r\n{headers}{login}\
                 Connection: close\r\n\r\n"
            );
            relay::send(&server, closing, text.as_bytes())?;
            relay::send(&server, closing, rest)?;
        }
    }
    Ok(server)
}

/// Looks the host up where we are, and takes the first of its addresses that answers.
fn reach(place: &HostPort, closing: &Closing) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in (place.host(), place.port()).to_socket_addrs()? {
        match reach_address(address, closing) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionAborted => last = error,
            other => return other,
        }
    }
    Err(last)
}

fn reach_address(address: SocketAddr, closing: &Closing) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            closing.wait(&[(socket.as_fd(), PollFlags::OUT)], CONNECT_TIME)?;
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
    closing: &Closing,
) -> io::Result<()> {
    let login = authorization(proxy);
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n");
    relay::send(server, closing, request.as_bytes())?;
    let answer = read_head(server, closing)?;
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!("the host's proxy {} says: {status}", proxy.place))),
    }
}

/// Reads up to the empty line and no further: what follows belongs to the tunnel.
fn read_head(mut server: &TcpStream, closing: &Closing) -> io::Result<String> {
    let deadline = Instant::now() + TUNNEL_TIME;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        closing.wait(&[(server.as_fd(), PollFlags::IN)], left)?;
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
