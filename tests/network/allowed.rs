//! Allowed connections work and are reported.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sandbox::{Decision, EventKind, NetworkEvent, Report, Request, Sandbox, Status};
use sandbox_tests::world::{OTHER, PRIVATE, SITE, SITE_V6, Who, in_a_world};

use crate::servers::{Echo, page};
use crate::{allow, execute, has_record, network, python, records};

const GET: &str = "import urllib.request, sys\nprint(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())";

#[test]
fn a_name_and_its_port_are_reached_and_told() {
    in_a_world("allowed::a_name_and_its_port_are_reached_and_told", Who::Root, || {
        let site = Echo::web(SITE, 8080, &page("hello"));
        let sandbox = Sandbox::new().unwrap();
        let request =
            python(GET, allow(&["site.example:8080"])).args(["http://site.example:8080/"]);
        let mut told = Vec::new();
        let report = sandbox.execute_with(
            request.build().unwrap(),
            &mut |event| {
                if let EventKind::Network(event) = &event.kind {
                    told.push(event.clone());
                }
            },
            &sandbox::CancelToken::new(),
        );
        let report = report.unwrap();
        assert_eq!((report.status, report.stdout.as_str()), (Status::Completed, "hello\n"));
        assert_eq!(site.came(), 1);
        let record = records(&report, "site.example", 8080, Decision::Allowed).next().unwrap();
        assert_eq!((record.count, record.address.as_str()), (1, SITE));
        assert!(record.bytes_in > 5 && record.bytes_out > 20, "{record:?}");
        let asked = network(&report).dns.iter().find(|question| question.kind == "A").unwrap();
        assert_eq!((asked.name.as_str(), asked.decision), ("site.example", Decision::Allowed));
        assert_eq!(asked.addresses, [SITE]);
        assert!(told.iter().any(|event| matches!(event,
            NetworkEvent::Connection { host, port: 8080, decision: Decision::Allowed, .. } if host == "site.example")));
        assert!(told.iter().any(|event| matches!(event, NetworkEvent::Question { .. })));
    });
}

#[test]
fn an_ordinary_user_can_use_an_allow_list() {
    in_a_world("allowed::an_ordinary_user_can_use_an_allow_list", Who::Nobody, || {
        // A port that only root may have on a host, and the name server's.
        let request = python(
            "import socket\nfor port in (8080, 80):\n    try:\n        s = socket.create_connection(('site.example', port), 20)\n\
             \x20       s.sendall(b'x'); print(port, s.recv(1))\n    except OSError as error: print(port, error)",
            allow(&["site.example:8080", "site.example:80"]),
        );
        let _site = Echo::listen(SITE, 8080);
        let report = execute(&Sandbox::new().unwrap(), request);
        assert_eq!(report.status, Status::Completed, "{}", report.stderr);
        assert!(report.stdout.starts_with("8080 b'x'\n80 "), "{}", report.stdout);
        assert!(has_record(&report, "site.example", 8080, Decision::Allowed));
        // There is no web server, and our listener inside accepted the connection: it was allowed, and failed.
        assert!(has_record(&report, "site.example", 80, Decision::Failed));
    });
}

#[test]
fn the_first_thing_a_program_does_can_be_a_connection() {
    in_a_world("allowed::the_first_thing_a_program_does_can_be_a_connection", Who::Root, || {
        let _server = Echo::listen("127.0.0.1", 7005);
        let sandbox = Sandbox::new().unwrap();
        // The supervisor, which has to listen inside before the program connects, gets the CPU seldom.
        let is_over = AtomicBool::new(false);
        let reports = thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let reports = (0..20).map(|_| {
                let code = "exec 3<>/dev/tcp/127.0.0.1/7005 && echo >&3 && read -r -u 3";
                let request = Request::builder("bash").code(code);
                Ok(sandbox.execute(request.allow(allow(&["127.0.0.1:7005"])).build()?)?)
            });
            let reports = reports.collect::<Result<Vec<Report>, Box<dyn Error>>>();
            is_over.store(true, Ordering::Relaxed);
            reports.unwrap()
        });
        for report in reports {
            assert_eq!(report.status, Status::Completed, "{}", report.stderr);
        }
    });
}

#[test]
fn domains_addresses_ranges_and_version_six_are_reached() {
    in_a_world("allowed::domains_addresses_ranges_and_version_six_are_reached", Who::Root, || {
        let _servers = [
            Echo::listen(SITE, 7001),
            Echo::listen(OTHER, 7002),
            Echo::listen(PRIVATE, 7003),
            Echo::listen(SITE_V6, 7004),
            Echo::listen("127.0.0.1", 7005),
            Echo::listen(PRIVATE, 7006),
        ];
        let rules = [
            "*.site.example:7000-7001",
            "93.184.216.35:7002",
            "10.77.0.0/16:7003",
            "six.example:7004",
            "127.0.0.1:7005",
            // A name may lead to a private address that is allowed itself.
            "rebind.example:7006",
            "10.77.0.1:7006",
        ];
        let code = "
import socket
for host, port in [('www.site.example', 7001), ('93.184.216.35', 7002), ('10.77.0.1', 7003), ('six.example', 7004),
                   ('127.0.0.1', 7005), ('rebind.example', 7006)]:
    with socket.create_connection((host, port), 20) as s:
        s.sendall(b'ping'); s.shutdown(socket.SHUT_WR)
        print(port, s.makefile().read())
";
        let report = execute(&Sandbox::new().unwrap(), python(code, allow(&rules)));
        let wanted = [7001, 7002, 7003, 7004, 7005, 7006].map(|port| format!("{port} ping\n"));
        assert_eq!(report.stdout, wanted.concat(), "{}", report.stderr);
        assert!(
            network(&report).connections.iter().all(|record| record.decision == Decision::Allowed)
        );
    });
}

#[test]
fn its_own_loopback_is_there_besides() {
    in_a_world("allowed::its_own_loopback_is_there_besides", Who::Root, || {
        let outside = Echo::listen("127.0.0.1", 7100);
        let code = "
import socket
with socket.create_server(('127.0.0.1', 7100)) as server:
    client = socket.create_connection(('localhost', 7100))
    peer, _ = server.accept(); peer.sendall(b'own'); print(client.recv(3))
";
        let report = execute(&Sandbox::new().unwrap(), python(code, allow(&["site.example"])));
        assert_eq!(report.stdout, "b'own'\n", "{}", report.stderr);
        assert_eq!(outside.came(), 0);
        assert!(network(&report).connections.is_empty(), "what stays inside is nobody's business");
    });
}

#[test]
fn names_are_answered_over_connections_too_and_only_public_addresses_are_told() {
    let name =
        "allowed::names_are_answered_over_connections_too_and_only_public_addresses_are_told";
    in_a_world(name, Who::Root, || {
        // A question in the words of the domain name system, behind its length, and the addresses in the answer.
        let code = "
import socket, struct
def ask(name):
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    question = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + labels + b'\\0' + struct.pack('>2H', 1, 1)
    with socket.create_connection(('127.0.0.1', 53), 20) as s:
        s.sendall(struct.pack('>H', len(question)) + question)
        stream = s.makefile('rb')
        answer = stream.read(struct.unpack('>H', stream.read(2))[0])
    number, flags, _, count = struct.unpack('>4H', answer[:8])
    assert number == 7 and flags & 0x8000
    return flags & 15, [socket.inet_ntoa(answer[len(answer) - 4:])] if count == 1 else count
print(ask('site.example'), ask('mixed.example'), ask('other.example'))
";
        let list = allow(&["site.example", "mixed.example"]);
        let report = execute(&Sandbox::new().unwrap(), python(code, list));
        // The second name has a private address besides; the third does not exist.
        assert_eq!(
            report.stdout,
            format!("(0, ['{SITE}']) (0, ['{SITE}']) (3, 0)\n"),
            "{}",
            report.stderr
        );
    });
}
