//! Much of it: many connections at once, large transfers, slow readers, ends of all kinds, and the limits.

use sandbox::{ByteSize, Decision, Limits, NetworkLimits, RequestBuilder, Sandbox, Status};
use sandbox_tests::world::{SITE, Who, in_a_world};

use crate::servers::Echo;
use crate::{allow, execute, has_record, network, python, records};

fn roomy(request: RequestBuilder) -> RequestBuilder {
    let limits =
        Limits::run().with_memory(ByteSize::mib(512)).unwrap().with_open_files(2048).unwrap();
    request.limits(limits.with_wall_time(std::time::Duration::from_mins(2)).unwrap())
}

#[test]
fn five_hundred_connections_at_once() {
    in_a_world("many::five_hundred_connections_at_once", Who::Root, || {
        let site = Echo::listen(SITE, 8080);
        let code = "
import asyncio
async def one(number):
    reader, writer = await asyncio.open_connection('site.example', 8080)
    writer.write(b'%d\\n' % number)
    line = await reader.readline()
    return writer, int(line) == number
async def main():
    done = await asyncio.gather(*[one(number) for number in range(500)])
    print(sum(right for _, right in done))
asyncio.run(main())
";
        let request = roomy(python(code, allow(&["site.example:8080"])));
        let report = execute(&Sandbox::new().unwrap(), request);
        assert_eq!(
            (report.status, report.stdout.as_str()),
            (Status::Completed, "500\n"),
            "{}",
            report.stderr
        );
        assert_eq!(site.came(), 500);
        let told: u64 = records(&report, "site.example", 8080, Decision::Allowed)
            .map(|record| record.count)
            .sum();
        assert_eq!(told, 500);
    });
}

#[test]
fn large_transfers_arrive_whole_and_a_connection_can_be_half_closed() {
    in_a_world(
        "many::large_transfers_arrive_whole_and_a_connection_can_be_half_closed",
        Who::Root,
        || {
            let _site = Echo::listen(SITE, 8080);
            // All of it is sent before anything is read: what is in between has to wait, and nothing may be lost. The end
            // of what is sent is heard by the server, whose own end is heard here.
            let code = "
import hashlib, os, socket, threading
block = os.urandom(1 << 20)
s = socket.create_connection(('site.example', 8080))
sent, received, total = hashlib.sha256(), hashlib.sha256(), 0
def send():
    for _ in range(64):
        s.sendall(block); sent.update(block)
    s.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send); sender.start()
threading.Event().wait(0.3)
while data := s.recv(1 << 16):
    received.update(data); total += len(data)
sender.join()
print(total >> 20, sent.digest() == received.digest())
";
            let report = execute(
                &Sandbox::new().unwrap(),
                roomy(python(code, allow(&["site.example:8080"]))),
            );
            assert_eq!(report.stdout, "64 True\n", "{}", report.stderr);
            let record = records(&report, "site.example", 8080, Decision::Allowed).next().unwrap();
            assert_eq!((record.bytes_in, record.bytes_out), (64 << 20, 64 << 20));
        },
    );
}

#[test]
fn a_connection_reset_by_the_server_reaches_the_program() {
    in_a_world("many::a_connection_reset_by_the_server_reaches_the_program", Who::Root, || {
        let listener = std::net::TcpListener::bind((SITE, 8080)).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Unread bytes make closing a reset.
                let mut byte = [0];
                let _ = stream.peek(&mut byte);
                drop(stream);
            }
        });
        let code = "
import socket
s = socket.create_connection(('site.example', 8080))
s.sendall(b'x' * 100)
try: print('read', s.recv(1))
except ConnectionResetError: print('reset')
";
        let report = execute(&Sandbox::new().unwrap(), python(code, allow(&["site.example:8080"])));
        assert_eq!(report.stdout, "reset\n", "{}", report.stderr);
    });
}

#[test]
fn limits_of_connections_bytes_and_questions_hold() {
    in_a_world("many::limits_of_connections_bytes_and_questions_hold", Who::Root, || {
        let _site = Echo::listen(SITE, 8080);
        let limits = NetworkLimits {
            connections: 3,
            bytes_in: 1 << 20,
            bytes_out: 1 << 16,
            questions: 4,
            ..NetworkLimits::default()
        };
        let list = || allow(&["site.example:8080"]).with_limits(limits);
        let sandbox = Sandbox::new().unwrap();
        let code = "
import socket
address = socket.gethostbyname('site.example')
def talk(much):
    try:
        with socket.create_connection((address, 8080), 20) as s:
            s.sendall(b'x' * much); return len(s.recv(1))
    except OSError: return 'broken'
print([talk(1) for _ in range(5)])
";
        let report = execute(&sandbox, python(code, list()));
        assert_eq!(report.stdout, "[1, 1, 1, 'broken', 'broken']\n", "{}", report.stderr);
        let refused = records(&report, "site.example", 8080, Decision::Refused).next().unwrap();
        assert_eq!(
            (refused.count, refused.reason.as_deref()),
            (2, Some("there were too many connections"))
        );

        let code = "
import socket
s = socket.create_connection(('site.example', 8080), 20)
try:
    for _ in range(64): s.sendall(b'x' * (1 << 16))
    s.shutdown(socket.SHUT_WR)
    while s.recv(1 << 16): pass
    print('all')
except OSError: print('broken')
";
        let report = execute(&sandbox, python(code, list()));
        assert_eq!(report.stdout, "broken\n", "{}", report.stderr);
        let told = records(&report, "site.example", 8080, Decision::Allowed).next().unwrap();
        assert!(told.bytes_out <= 1 << 16, "{told:?}");
        let refused = records(&report, "site.example", 8080, Decision::Refused).next().unwrap();
        assert_eq!(refused.reason.as_deref(), Some("there were too many bytes"));

        let code = "
import socket
for _ in range(9):
    try: socket.gethostbyname('site.example')
    except OSError: print('unknown'); break
";
        let report = execute(&sandbox, python(code, list()));
        assert_eq!(report.stdout, "unknown\n", "{}", report.stderr);
    });
}

#[test]
fn reports_of_a_flooding_program_are_bounded() {
    in_a_world("many::reports_of_a_flooding_program_are_bounded", Who::Root, || {
        let code = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(60000):
    try: s.sendto(b'x', (f'198.51.{number % 200}.{number // 300}', 1 + number % 60000))
    except OSError: pass
print('sent')
";
        let report =
            execute(&Sandbox::new().unwrap(), roomy(python(code, allow(&["site.example"]))));
        assert_eq!(report.stdout, "sent\n", "{}", report.stderr);
        assert!(network(&report).truncated);
        assert!(network(&report).connections.len() <= 1000);
        assert!(!has_record(&report, "site.example", 80, Decision::Allowed));
    });
}
