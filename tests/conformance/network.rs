//! What of the network a program reaches: nothing, or a loopback of its own.

use std::net::TcpListener;

use sandbox::{NetworkPolicy, Report};
use sandbox_tests::backend::{execute, with_each_backend};

use crate::table::python;

table! {
    without_a_network_there_is_no_address_to_use [NoLoopback]: python(USE_LOOPBACK) => RuntimeError, |report: &Report| {
        assert!(report.stderr.contains("Error"), "{}", report.stderr);
        assert!(!report.stdout.contains("pong"));
    };
    without_a_network_no_interface_is_up [NoLoopback]: python(INTERFACES) => Completed, |report: &Report| {
        assert_eq!(report.stdout, "up: []\n");
    };
    with_localhost_a_program_reaches_itself:
        python(USE_LOOPBACK).network(NetworkPolicy::Localhost) => Completed, |report: &Report| {
            assert_eq!(report.stdout, "pong\n");
        };
    with_localhost_it_has_version_six_too:
        python(&USE_LOOPBACK.replace("127.0.0.1", "::1").replace("AF_INET", "AF_INET6"))
            .network(NetworkPolicy::Localhost)
        => Completed, |report: &Report| assert_eq!(report.stdout, "pong\n");
    with_localhost_it_has_its_name:
        python("import socket\nprint(socket.gethostbyname('localhost'), socket.gethostbyname(socket.gethostname()))")
            .network(NetworkPolicy::Localhost)
        => Completed, |report: &Report| assert_eq!(report.stdout, "127.0.0.1 127.0.0.1\n");
    with_localhost_nothing_else_is_up: python(INTERFACES).network(NetworkPolicy::Localhost)
        => Completed, |report: &Report| assert_eq!(report.stdout, "up: ['lo']\n");
    with_localhost_no_other_address_is_reached:
        python("import socket\nfor address in ('192.0.2.1', '8.8.8.8', '169.254.169.254', '10.0.0.1'):\n\
                \x20   try: socket.create_connection((address, 80), timeout=1)\n\
                \x20   except OSError as error: print('refused')\n\
                \x20   else: print('reached', address)")
            .network(NetworkPolicy::Localhost)
        => Completed, |report: &Report| assert_eq!(report.stdout, "refused\n".repeat(4));
    with_localhost_no_name_outside_is_found:
        python("import socket\ntry: print(socket.getaddrinfo('example.com', 80))\nexcept OSError: print('unknown')")
            .network(NetworkPolicy::Localhost)
        => Completed, |report: &Report| assert_eq!(report.stdout, "unknown\n");
}

/// A server and its client in one program.
const USE_LOOPBACK: &str = "
import socket, threading
server = socket.socket(socket.AF_INET)
server.bind(('127.0.0.1', 0))
server.listen()
def serve():
    peer, _ = server.accept()
    peer.sendall(b'pong')
    peer.close()
threading.Thread(target=serve, daemon=True).start()
client = socket.create_connection(server.getsockname()[:2])
print(client.recv(4).decode())
";

/// A line in this table is an address, and only an interface that is up has one; besides that the flags
/// are asked for one by one, where the kernel answers.
const INTERFACES: &str = "
import fcntl, socket, struct
up = []
for line in open('/proc/self/net/dev').readlines()[2:]:
    name = line.split(':')[0].strip()
    for family in (socket.AF_INET, socket.AF_UNIX):
        try:
            probe = socket.socket(family, socket.SOCK_DGRAM)
            answer = fcntl.ioctl(probe, 0x8913, struct.pack('16sh', name.encode(), 0) + bytes(22))
        except OSError:
            continue
        if struct.unpack('16sh', answer[:18])[1] & 1 and name not in up:
            up.append(name)
print('up:', up)
";

#[test]
fn the_hosts_loopback_is_out_of_reach() {
    for policy in [NetworkPolicy::None, NetworkPolicy::Localhost] {
        with_each_backend(|sandbox| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            // The door is open: we can walk through it ourselves.
            std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            let code = format!(
                "import socket\ntry: socket.create_connection(('127.0.0.1', {port}), timeout=2)\n\
                 except OSError: print('refused')\nelse: print('reached')"
            );
            let request = python(&code).network(policy);
            if let Some(report) = execute("the_hosts_loopback", sandbox, request) {
                assert_eq!(report.stdout, "refused\n", "{policy}");
            }
        });
    }
}

#[test]
fn the_hosts_abstract_sockets_are_out_of_reach() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    let name = format!("sandbox-run-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    UnixStream::connect_addr(&address).unwrap();
    with_each_backend(|sandbox| {
        let code = format!(
            "import socket\ntry: socket.socket(socket.AF_UNIX).connect('\\0{name}')\n\
             except OSError: print('refused')\nelse: print('reached')"
        );
        if let Some(report) = execute("abstract_sockets", sandbox, python(&code)) {
            assert_eq!(report.stdout, "refused\n");
        }
    });
}
