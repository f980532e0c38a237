use std::io::Write as _;
use std::net::TcpStream;

use crate::server::{Belongings, Server};

#[test]
fn a_server_that_is_asked_to_stop_lets_what_runs_finish() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let id = server.accept("import time; time.sleep(0.5); print('done')");
    server.wait_until_running(&id);
    let belongings = Belongings::of(&server);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    belongings.assert_gone();

    let server = Server::start(data.path());
    let report = server.get(&format!("/api/v1/execute/{id}")).json();
    assert_eq!(report["stdout"], "done\n", "it was over before the server was: {report}");
}

#[test]
fn what_does_not_finish_in_time_is_done_by_the_next_start() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start_with(data.path(), &[("SANDBOXD_SHUTDOWN_DEADLINE", "100ms")]);
    let id = server.accept("import time; time.sleep(3); print('done')");
    server.wait_until_running(&id);
    let belongings = Belongings::of(&server);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    belongings.assert_gone();

    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["stdout"], "done\n", "{report}");
}

/// Neither a client that never finishes its request nor one that only listens.
#[test]
fn clients_that_stay_do_not_hold_the_end_up() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
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
