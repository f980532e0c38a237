use std::io::Write as _;
use std::net::TcpStream;

use crate::server_process::{Residue, Server};

#[test]
fn running_executions_finish_before_the_server_stops() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let id = server.accept("import time; time.sleep(0.5); print('done')");
    server.wait_until_running(&id);
    let residue = Residue::of(&server);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    residue.assert_gone();

    let server = Server::start(data.path());
    let report = server.get(&format!("/api/v1/execute/{id}")).json();
    assert_eq!(report["stdout"], "done\n", "it finished before the server stopped: {report}");
}

#[test]
fn an_execution_above_the_deadline_runs_again_after_the_next_start() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), &[("SANDBOXD_SHUTDOWN_DEADLINE", "100ms")]);
    let id = server.accept("import time; time.sleep(3); print('done')");
    server.wait_until_running(&id);
    let residue = Residue::of(&server);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    residue.assert_gone();

    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["stdout"], "done\n", "{report}");
}

/// A client with an incomplete request, one that streams events, and an idle one.
#[test]
fn open_connections_do_not_delay_the_shutdown() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start_with(data.path(), &[("SANDBOXD_SHUTDOWN_DEADLINE", "100ms")]);
    let id = server.accept("import time; time.sleep(9)");
    server.wait_until_running(&id);
    let stream = format!("GET /api/v1/execute/{id}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let half = "POST /api/v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";
    let clients = [stream.as_str(), half, ""].map(|request| {
        let mut client = TcpStream::connect(server.address).expect("the server listens");
        client.write_all(request.as_bytes()).expect("the server reads");
        client
    });
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    drop(clients);
}
