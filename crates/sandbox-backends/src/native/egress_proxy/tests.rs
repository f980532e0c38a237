//! The proxy from a client's side, on real sockets.

use std::io::{Read, Write};

use sandbox_core::{HostPort, HostProxies, HostProxy};

use super::*;

/// A listener on a free port.
fn listener() -> (TcpListener, HostPort) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, HostPort::new("127.0.0.1", port).unwrap())
}

fn open(places: &[&HostPort], proxies: HostProxies) -> (RunningProxy, u16) {
    let (listener, place) = listener();
    listener.set_nonblocking(true).unwrap();
    let places = places.iter().map(|place| (*place).clone()).collect();
    let egress_proxy = EgressProxy { port: place.port(), places, proxies };
    (RunningProxy::open(listener.into(), egress_proxy).unwrap(), place.port())
}

/// Sends a request to the proxy and reads the whole response.
fn send(port: u16, text: &str) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// Serves one connection: reads a request head, responds and closes. Returns what it read.
fn serve_once(listener: TcpListener, answer: &'static str) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            received.push(byte[0]);
        }
        peer.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(received).unwrap()
    })
}

#[test]
fn a_tunnel_carries_both_ways() {
    let (server, place) = listener();
    let (_gate, port) = open(&[&place], HostProxies::default());
    let received = serve_once(server, "pong");
    let answer = send(port, &format!("CONNECT {place} HTTP/1.1\r\n\r\nping\r\n\r\n"));
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\npong");
    assert_eq!(received.join().unwrap(), "ping\r\n\r\n");
}

#[test]
fn a_plain_request_is_passed_on_as_the_server_wants_it() {
    let (server, place) = listener();
    let (_gate, port) = open(&[&place], HostProxies::default());
    let received = serve_once(server, "HTTP/1.1 204 No Content\r\n\r\n");
    let request = format!("GET http://{place}/x HTTP/1.1\r\nHost: liar\r\nA: b\r\n\r\n");
    assert_eq!(send(port, &request), "HTTP/1.1 204 No Content\r\n\r\n");
    let expected = format!("GET /x HTTP/1.1\r\nHost: {place}\r\nA: b\r\nConnection: close\r\n\r\n");
    assert_eq!(received.join().unwrap(), expected);
}

#[test]
fn an_unlisted_host_is_refused_without_a_connection() {
    let (server, place) = listener();
    server.set_nonblocking(true).unwrap();
    let other = HostPort::new("127.0.0.1", place.port() ^ 1).unwrap();
    for places in [vec![], vec![&other]] {
        let (egress_proxy, port) = open(&places, HostProxies::default());
        for request in [
            format!("CONNECT {place} HTTP/1.1\r\n\r\n"),
            format!("CONNECT localhost:{} HTTP/1.1\r\n\r\n", other.port()),
            format!("GET http://{place}/ HTTP/1.1\r\n\r\n"),
        ] {
            let answer = send(port, &request);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        }
        let refusals = egress_proxy.close();
        assert_eq!(refusals.len(), 2, "{refusals:?}");
        assert!(refusals[0].starts_with(&place.to_string()), "{refusals:?}");
    }
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn an_invalid_request_gets_status_400() {
    let (_gate, port) = open(&[], HostProxies::default());
    for request in ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n"] {
        assert!(send(port, request).starts_with("HTTP/1.1 400 "));
    }
    let endless = "A".repeat(40 * 1024);
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // The proxy may close before it has read all of it.
    let _ = client.write_all(endless.as_bytes());
    let mut byte = [0];
    assert!(client.read(&mut byte).is_err() || byte == *b"H");
}

#[test]
fn an_unreachable_host_gets_status_502() {
    let (server, place) = listener();
    drop(server);
    let (_gate, port) = open(&[&place], HostProxies::default());
    let answer = send(port, &format!("CONNECT {place} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("refused"), "{answer}");
}

#[test]
fn the_hosts_own_proxy_is_used_where_there_is_one() {
    let place: HostPort = "index.invalid:443".parse().unwrap();
    let through = |proxy: &HostPort| {
        let proxy = HostProxy { place: proxy.clone(), login: Some("user:secret".into()) };
        HostProxies { tunnel: Some(proxy.clone()), plain: Some(proxy), direct: Vec::new() }
    };
    let login = "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n";

    let (proxy, at) = listener();
    let (_gate, port) = open(&[&place], through(&at));
    let received = serve_once(proxy, "HTTP/1.1 200 fine\r\n\r\nhello");
    let answer = send(port, "CONNECT index.invalid:443 HTTP/1.1\r\n\r\n");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(
        received.join().unwrap(),
        format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{login}\r\n")
    );

    let (proxy, at) = listener();
    let (_gate, port) = open(&[&place], through(&at));
    let received = serve_once(proxy, "HTTP/1.1 407 who are you\r\n\r\n");
    let answer = send(port, "CONNECT index.invalid:443 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("says: HTTP/1.1 407 who are you"), "{answer}");
    drop(received.join().unwrap());

    let (proxy, at) = listener();
    let (_gate, port) = open(&[&place], through(&at));
    let received = serve_once(proxy, "HTTP/1.1 200 fine\r\n\r\n");
    send(port, "GET http://index.invalid:443/a HTTP/1.1\r\n\r\n");
    let received = received.join().unwrap();
    assert!(received.starts_with("GET http://index.invalid:443/a HTTP/1.1\r\n"), "{received}");
    assert!(received.contains(login), "{received}");
}

#[test]
fn stopping_the_proxy_closes_its_connections() {
    let (server, place) = listener();
    let (egress_proxy, port) = open(&[&place], HostProxies::default());
    let mut tunnel = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(tunnel, "CONNECT {place} HTTP/1.1\r\n\r\n").unwrap();
    let (mut peer, _) = server.accept().unwrap();
    let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(egress_proxy);
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    drop(silent);
    // The listener is closed with the proxy.
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
