//! What a stage with an egress proxy reaches: the destinations in its plan, through the proxy, and nothing else.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use sandbox::{
    Backend, CancelToken, EgressProxy, Ending, HostPort, HostProxies, Limits, Observer,
    ProcessSpec, SandboxSpec, Stage, StagePlan, StreamKind, UsageSample,
};
use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};

const PORT: u16 = 3128;

/// Sends a plain request and a tunnel request to the proxy, then tries a direct connection.
const CLIENT: &str = r#"
import socket, sys
destination = sys.argv[1]
def ask(request):
    try:
        proxy = socket.create_connection(("127.0.0.1", 3128), timeout=10)
    except OSError:
        return "no proxy"
    proxy.sendall(request.encode())
    answer = b""
    while chunk := proxy.recv(4096):
        answer += chunk
    return answer.split(b"\r\n")[0].decode() + " ... " + answer.decode().splitlines()[-1]
print(ask(f"GET http://{destination}/ HTTP/1.1\r\n\r\n"))
print(ask(f"CONNECT {destination} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"))
host, port = destination.split(":")
try:
    socket.create_connection((host, int(port)), timeout=10)
    print("connected directly")
except OSError:
    print("no direct connection")
"#;

struct Silent;

impl Observer for Silent {
    fn output(&mut self, _: StreamKind, _: &[u8]) {}
    fn usage(&mut self, _: UsageSample) {}
}

/// A server on the host's loopback that sends a greeting to every client, until the test ends.
fn greeting_server() -> HostPort {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && peer.read_exact(&mut byte).is_ok() {
                request.push(byte[0]);
            }
            // A client that has disconnected is ignored.
            let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwelcome\n");
        }
    });
    HostPort::new("127.0.0.1", port).unwrap()
}

fn visit(destination: &HostPort, egress_proxy: Option<EgressProxy>) -> String {
    let options = NativeOptions { spare: Spare::Keep(0), ..NativeOptions::default() };
    let backend = NativeBackend::start(&options).unwrap();
    let command = ["/usr/bin/python3", "-c", CLIENT, &destination.to_string()].map(str::to_owned);
    let sandbox = SandboxSpec { egress_proxy, ..SandboxSpec::new(Limits::run()) };
    let process = ProcessSpec::new(command.into(), BTreeMap::new());
    let plan = StagePlan::new(Stage::Run, sandbox, process);
    let outcome = backend.run(&plan, &mut Silent, &CancelToken::new()).unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8(outcome.stdout).unwrap()
}

fn proxy_to(destinations: &[&HostPort]) -> EgressProxy {
    let places = destinations.iter().map(|destination| (*destination).clone()).collect();
    EgressProxy { port: PORT, places, proxies: HostProxies::default() }
}

#[test]
fn the_proxy_reaches_only_listed_hosts() {
    let destination = greeting_server();
    let seen = visit(&destination, Some(proxy_to(&[&destination])));
    assert_eq!(
        seen,
        "HTTP/1.1 200 OK ... welcome\n\
         HTTP/1.1 200 Connection established ... welcome\n\
         no direct connection\n"
    );
}

#[test]
fn another_port_of_the_same_host_is_refused() {
    let (destination, other) = (greeting_server(), greeting_server());
    // The other port accepts connections from outside the sandbox.
    TcpStream::connect((other.host(), other.port())).unwrap();
    let seen = visit(&other, Some(proxy_to(&[&destination])));
    let refused = format!(
        "HTTP/1.1 403 Forbidden ... {other} is not an allowed destination of this sandbox\n"
    );
    assert_eq!(seen, format!("{refused}{refused}no direct connection\n"));
}

#[test]
fn an_empty_allow_list_permits_nothing() {
    let destination = greeting_server();
    let seen = visit(&destination, Some(proxy_to(&[])));
    assert_eq!(seen.matches("403 Forbidden").count(), 2, "{seen}");
}

#[test]
fn without_the_proxy_nothing_is_reached() {
    let destination = greeting_server();
    assert_eq!(visit(&destination, None), "no proxy\nno proxy\nno direct connection\n");
}
