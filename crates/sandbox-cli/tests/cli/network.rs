//! Network access from the command line.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::support::call;

const REACH: &str = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20)\n\
    s.sendall(b'x')\nprint(s.recv(6).decode())";

fn serve() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(b"served");
        }
    });
    port.to_string()
}

#[test]
fn allowed_hosts_are_reached_and_others_refused() {
    let port = serve();
    let rule = format!("127.0.0.1:{port}");
    let base = ["-l", "python", "-c", REACH, "--network", "allowlist"];
    let allowed = call(&[&base[..], &["--allow", &rule, "--", &port]].concat());
    assert_eq!(
        (allowed.code, allowed.stdout.as_str()),
        (Some(0), "served\n"),
        "{}",
        allowed.stderr
    );
    let other = [&base[..], &["--allow", "192.0.2.1:1", "--", &port]].concat();
    let refused = call(&other);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("ConnectionRefusedError"), "{}", refused.stderr);
}

#[test]
fn mistakes_are_one_line() {
    for (line, said) in [
        (&["--allow", "example.org"][..], "require --network allowlist"),
        (&["--allow-dns"], "require --network allowlist"),
        (&["--network", "allowlist", "--allow", "a b"], "'a b' cannot be allowed"),
        (&["--network", "allowlist", "--allow", "example.org:99999"], "a port is a number"),
        (&["--network", "everything"], "it is none, localhost or allowlist"),
        (
            &["--network", "allowlist", "--isolation", "runc", "--allow", "x.org"],
            "use --isolation native",
        ),
    ] {
        let answer = call(&[&["-l", "bash", "-c", "true"], line].concat());
        assert_eq!(answer.code, Some(2), "{line:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(said), "{line:?}: {}", answer.stderr);
        assert_eq!(answer.stderr.trim().lines().count(), 1, "{}", answer.stderr);
    }
}
