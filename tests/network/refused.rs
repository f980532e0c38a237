//! What is not allowed is refused at once and reported; with the protection off the same program reaches it.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::Ordering;

use sandbox::{Decision, Protection, Sandbox, Status, Transport};
use sandbox_tests::world::{METADATA, OTHER, PRIVATE, SITE, SITE_V6, Who, in_a_world};

use crate::servers::{Echo, hear_datagrams, page, redirect};
use crate::{allow, execute, has_record, network, python};

/// Tries to reach each argument, and says how that ended.
const REACH: &str = "
import socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(':', 1)
    try:
        with socket.create_connection((host.strip('[]'), int(port)), 20) as s:
            s.sendall(b'x'); print(place, 'reached' if s.recv(1) else 'closed')
    except ConnectionRefusedError: print(place, 'refused')
    except socket.gaierror: print(place, 'unknown')
    except OSError as error: print(place, error)
";

#[test]
fn every_way_around_the_list_is_refused() {
    in_a_world("refused::every_way_around_the_list_is_refused", Who::Root, || {
        let servers = [
            Echo::listen(SITE, 8080),
            Echo::listen(SITE, 8081),
            Echo::listen(OTHER, 8080),
            Echo::listen(PRIVATE, 8080),
            Echo::listen(METADATA, 80),
            Echo::listen(SITE_V6, 8080),
            Echo::listen("127.0.0.1", 9090),
        ];
        let came = || servers.iter().map(Echo::came).collect::<Vec<_>>();
        let by_address = [
            format!("{SITE}:8081"),
            format!("{OTHER}:8080"),
            format!("{PRIVATE}:8080"),
            format!("{METADATA}:80"),
            format!("[{SITE_V6}]:8080"),
            format!("[::ffff:{PRIVATE}]:8080"),
            "127.0.0.1:9090".to_owned(),
        ];
        let by_name = [
            "other.example:8080",
            "rebind.example:8080",
            "metadata.example:80",
            "site.example:8081",
        ];
        // A rule for a name that leads to a private address does not open it.
        let rules = ["site.example:8080", "rebind.example:8080", "metadata.example:80"];
        let places = || by_address.iter().cloned().chain(by_name.map(str::to_owned));
        let report = execute(&Sandbox::new().unwrap(), python(REACH, allow(&rules)).args(places()));
        assert_eq!(report.status, Status::Completed, "{}", report.stderr);
        for (line, place) in report.stdout.lines().zip(places()) {
            let wanted = match place.as_str() {
                "other.example:8080" | "rebind.example:8080" | "metadata.example:80" => "unknown",
                _ => "refused",
            };
            assert_eq!(line, format!("{place} {wanted}"));
        }
        assert_eq!(report.stdout.lines().count(), places().count());
        assert_eq!(came(), [0; 7]);
        for (host, port) in
            [(SITE, 8081), (OTHER, 8080), (PRIVATE, 8080), (METADATA, 80), (SITE_V6, 8080)]
        {
            assert!(has_record(&report, host, port, Decision::Refused), "{host}:{port}");
        }
        // By its name, as the program looked it up.
        assert!(has_record(&report, "site.example", 8081, Decision::Refused));
        for name in ["other.example", "rebind.example", "metadata.example"] {
            let asked = network(&report).dns.iter().find(|question| question.name == name).unwrap();
            assert_eq!(asked.decision, Decision::Refused, "{name}");
        }
        let rebinding =
            network(&report).dns.iter().find(|asked| asked.name == "rebind.example").unwrap();
        assert!(rebinding.reason.as_ref().unwrap().contains("private"), "{rebinding:?}");

        // The pair: without a network of its own all of it is reached.
        let open = Sandbox::builder().without(Protection::NetNamespace).build().unwrap();
        let request = python(REACH, allow(&rules)).args(by_address.clone());
        let report = execute(&open, request);
        for line in report.stdout.lines() {
            assert!(line.ends_with("reached"), "{line}");
        }
        assert_eq!(report.stdout.lines().count(), by_address.len());
        assert!(came()[1..].iter().all(|count| *count > 0), "{:?}", came());
    });
}

#[test]
fn a_redirect_to_a_private_address_leads_nowhere() {
    in_a_world("refused::a_redirect_to_a_private_address_leads_nowhere", Who::Root, || {
        let _site = Echo::web(SITE, 8080, &redirect(&format!("http://{PRIVATE}:8080/secret")));
        let secret = Echo::web(PRIVATE, 8080, &page("secret"));
        let code = "
import urllib.request, sys
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except OSError as error: print('refused', error)
";
        let fetch = |sandbox: &Sandbox, url: &str| {
            execute(sandbox, python(code, allow(&["site.example:8080"])).args([url]))
        };
        let report = fetch(&Sandbox::new().unwrap(), "http://site.example:8080/");
        assert!(report.stdout.starts_with("refused"), "{}", report.stdout);
        assert_eq!(secret.came(), 0);
        assert!(has_record(&report, PRIVATE, 8080, Decision::Refused));
        let open = Sandbox::builder().without(Protection::NetNamespace).build().unwrap();
        let report = fetch(&open, &format!("http://{SITE}:8080/"));
        assert_eq!((report.stdout.as_str(), secret.came()), ("secret\n", 1));
    });
}

#[test]
fn datagrams_stay_inside() {
    in_a_world("refused::datagrams_stay_inside", Who::Root, || {
        let heard = hear_datagrams(SITE, 8053);
        let code = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 8053)); s.send(b'x'); s.settimeout(20)
try: s.send(b'y'); print('sent')
except OSError as error: print(error)
";
        let send = |sandbox: &Sandbox| {
            execute(
                sandbox,
                python(code, allow(&["site.example:8053", "93.184.216.34:8053"])).args([SITE]),
            )
        };
        let report = send(&Sandbox::new().unwrap());
        assert!(report.stdout.contains("refused"), "{}", report.stdout);
        assert_eq!(heard.load(Ordering::SeqCst), 0);
        let record =
            network(&report).connections.iter().find(|record| record.port == 8053).unwrap();
        assert_eq!((record.transport, record.decision), (Transport::Udp, Decision::Refused));
        let open = Sandbox::builder().without(Protection::NetNamespace).build().unwrap();
        assert_eq!(send(&open).stdout, "sent\n");
        assert!(heard.load(Ordering::SeqCst) > 0);
    });
}

/// Raw and packet sockets, and those for ICMP, have attacks of their own with a pair each (attacks/): here that an
/// allow-list does not bring them back.
#[test]
fn other_kinds_of_sockets_are_not_brought_back() {
    in_a_world("refused::other_kinds_of_sockets_are_not_brought_back", Who::Root, || {
        let code = "
import socket
for family, kind, protocol in [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255),
                               (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_INET, socket.SOCK_DGRAM, 1)]:
    try:
        socket.socket(family, kind, protocol)
        print('made', family, kind)
    except OSError: print('refused')
";
        let report = execute(&Sandbox::new().unwrap(), python(code, allow(&["site.example"])));
        assert_eq!(report.stdout, "refused\n".repeat(4), "{}", report.stderr);
    });
}

#[test]
fn abstract_sockets_of_the_host_are_out_of_reach() {
    in_a_world("refused::abstract_sockets_of_the_host_are_out_of_reach", Who::Root, || {
        let name = format!("sandbox-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        let code = "
import socket, sys
s = socket.socket(socket.AF_UNIX)
try: s.connect('\\0' + sys.argv[1]); print('reached')
except OSError as error: print('refused')
";
        let reach = |sandbox: &Sandbox| {
            execute(sandbox, python(code, allow(&["site.example"])).args([&name])).stdout
        };
        assert_eq!(reach(&Sandbox::new().unwrap()), "refused\n");
        let open =
            Sandbox::builder().without(Protection::NetNamespace).without(Protection::Landlock);
        assert_eq!(reach(&open.build().unwrap()), "reached\n");
    });
}

#[test]
fn allow_dns_resolves_any_name() {
    in_a_world("refused::allow_dns_resolves_any_name", Who::Root, || {
        let _other = Echo::listen(OTHER, 8080);
        let rules: Vec<_> =
            ["93.184.216.35:8080"].iter().map(|rule| rule.parse().unwrap()).collect();
        for (dns, wanted) in [(false, "unknown"), (true, "reached")] {
            let list = sandbox::Allowlist::new(rules.clone(), dns).unwrap();
            let request = python(REACH, list).args(["other.example:8080", "site.example:8080"]);
            let report = execute(&Sandbox::new().unwrap(), request);
            let second = if dns { "refused" } else { "unknown" };
            assert_eq!(
                report.stdout,
                format!("other.example:8080 {wanted}\nsite.example:8080 {second}\n")
            );
        }
    });
}
