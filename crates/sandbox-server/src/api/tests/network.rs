//! Network access of programs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::*;

/// Starts a TCP server that responds to each connection.
fn serve() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(b"served");
        }
    });
    port
}

fn reach(port: u16, allow: &[String]) -> Value {
    let code = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {port}), 20)\ns.sendall(b'x')\nprint(s.recv(6).decode())"
    );
    json!({"language": "python", "code": code, "network": {"mode": "allowlist", "allow": allow}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_needs_the_operators_permission() {
    let port = serve();
    let request = reach(port, &[format!("127.0.0.1:{port}")]);
    let server = Server::start().await;
    let problem = server.post("/api/v1/execute", &request).await.expect(400);
    assert!(problem["detail"].as_str().unwrap().contains("'network_allow'"), "{problem}");

    let set_up = |config: &mut Config| {
        config.network.ranges = vec!["127.0.0.0/8".parse().unwrap()];
    };
    let server = Server::with(set_up).await;
    let report = server.post("/api/v1/execute", &request).await.expect(200);
    assert_eq!(report["stdout"], "served\n", "{report}");
    let record = &report["network"]["connections"][0];
    assert_eq!((&record["decision"], &record["port"]), (&"allowed".into(), &port.into()));
    // The stored report has it too.
    let id = report["id"].as_str().unwrap();
    let kept = server.get(&format!("/api/v1/execute/{id}")).await.expect(200);
    assert_eq!(kept["network"], report["network"]);
    let (refused, public) = (reach(port, &["example.org".to_owned()]), "/api/v1/execute");
    let report = server.post(public, &refused).await.expect(200);
    assert_eq!(report["status"], "runtime_error");
    assert!(report["stderr"].as_str().unwrap().contains("ConnectionRefusedError"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_allowlist_mode_can_be_turned_off_and_errors_name_the_entry() {
    let server = Server::with(|config| config.network.allowlist = false).await;
    let request = reach(1, &["example.org".to_owned()]);
    let problem = server.post("/api/v1/execute", &request).await.expect(400);
    assert!(problem["detail"].as_str().unwrap().contains("turned"), "{problem}");
    let server = Server::start().await;
    let request = reach(1, &["not a host".to_owned()]);
    let problem = server.post("/api/v1/execute", &request).await.expect(400);
    assert!(
        problem["detail"].as_str().unwrap().contains("'not a host' cannot be allowed"),
        "{problem}"
    );
}
