//! Networks of instances: the processes of one share it, and each has what its specification says.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use sandbox::{Allowlist, BackendError, CancelToken, Isolation, NetworkPolicy, SandboxSpec};
use sandbox_tests::wait::wait_for;
use sandbox_tests::world::{OTHER, SITE, Who, in_a_world};

use crate::harness::{
    TEST_TIMEOUT, create, native_without, output, python, spec, start, with_each_backend,
};

const SERVER: &str = "
import socket
server = socket.create_server(('127.0.0.1', 0))
with open('.port', 'w') as file: file.write(str(server.getsockname()[1]))
import os; os.rename('.port', 'port')
while True: server.accept()[0].sendall(b'pong')
";

/// Connects to HOST and PORT, and prints what the other end sends.
const CLIENT: &str = "
import socket
try: print(socket.create_connection(('HOST', PORT), 20).recv(9).decode())
except OSError: print('refused')
";

fn client(host: &str, port: &str) -> String {
    CLIENT.replace("HOST", host).replace("PORT", port)
}

fn localhost() -> SandboxSpec {
    SandboxSpec { network: NetworkPolicy::Localhost, ..spec() }
}

#[test]
fn processes_reach_each_other_over_localhost() {
    with_each_backend(|backend| {
        let instance = create(backend, localhost());
        let instance = instance.as_ref();
        let server = start(instance, python(SERVER));
        let port = "port".parse().unwrap();
        let port = wait_for(TEST_TIMEOUT, || instance.get(&port, 10).ok());
        let port = String::from_utf8(port.expect("the server listens")).unwrap();
        for _ in 0..2 {
            assert_eq!(output(instance, python(&client("127.0.0.1", &port))), "pong\n");
        }
        drop(server);
        assert_eq!(output(instance, python(&client("127.0.0.1", &port))), "refused\n");
    });
}

#[test]
fn there_is_no_localhost_unless_it_is_asked_for() {
    let reach = "
import socket
try:
    server = socket.create_server(('127.0.0.1', 0))
    socket.create_connection(server.getsockname(), 20)
except OSError: print('refused')
else: print('reached')
";
    with_each_backend(|backend| {
        for (spec, answer) in [(localhost(), "reached\n"), (spec(), "refused\n")] {
            assert_eq!(output(create(backend, spec).as_ref(), python(reach)), answer);
        }
    });
}

#[test]
fn the_hosts_localhost_is_out_of_reach() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = host.local_addr().unwrap();
    TcpStream::connect(address).unwrap();
    with_each_backend(|backend| {
        let instance = create(backend, localhost());
        let client = client("127.0.0.1", &address.port().to_string());
        assert_eq!(output(instance.as_ref(), python(&client)), "refused\n");
    });
}

fn with_list(rules: &[&str]) -> SandboxSpec {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let allow = Some(Arc::new(Allowlist::new(rules, false).unwrap()));
    SandboxSpec { network: NetworkPolicy::Allowlist, allow, ..spec() }
}

/// Greets everybody who connects.
fn greet(address: &str) {
    let listener = TcpListener::bind((address, 8080)).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client may be gone already.
            let _ = stream.and_then(|mut stream| stream.write_all(b"hello"));
        }
    });
}

#[test]
fn every_process_reaches_what_the_list_allows_and_nothing_else() {
    let name = "network::every_process_reaches_what_the_list_allows_and_nothing_else";
    in_a_world(name, Who::Root, || {
        greet(SITE);
        greet(OTHER);
        let backend = native_without(&[]);
        let reach = |rules: &[&str]| {
            let instance = create(&backend, with_list(rules));
            let reach = |host| output(instance.as_ref(), python(&client(host, "8080")));
            [reach("site.example"), reach("other.example"), reach("site.example"), reach(OTHER)]
        };
        let [hello, refused] = ["hello\n", "refused\n"];
        assert_eq!(reach(&["site.example:8080"]), [hello, refused, hello, refused]);
        assert_eq!(reach(&["site.example:8080", "other.example:8080"])[..3], [hello; 3]);
    });
}

#[test]
fn containers_refuse_an_allow_list() {
    with_each_backend(|backend| {
        let created = backend.create(with_list(&["site.example:8080"]), &CancelToken::new());
        match backend.isolation() {
            Isolation::Native => assert!(created.is_ok()),
            _ => assert!(matches!(created.err(), Some(BackendError::Refused(_)))),
        }
    });
}
