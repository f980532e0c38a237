//! HTTP/1.1 pipelining and HTTP/2.

use std::process::Command;

use crate::raw_connection::RawConnection;
use crate::server_process::Server;

#[test]
fn pipelined_requests_are_answered_in_order() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let requests: Vec<_> = (0..20)
        .map(|n| {
            let last = if n == 19 { "Connection: close\r\n" } else { "" };
            let id = format!("X-Request-Id: number-{n}");
            format!("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n{id}\r\n{last}\r\n")
        })
        .collect();
    let response = RawConnection::with(&server, requests.concat()).until_closed();
    let ids = response.lines().filter_map(|line| line.strip_prefix("x-request-id: number-"));
    let ids: Vec<usize> =
        ids.map(|id| id.parse().expect("the server returns the id of the request")).collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>(), "{response}");
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 20);
}

#[test]
fn http2_with_prior_knowledge_works() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    let url = format!("http://{}/api/v1/execute", server.address);
    let body = "{\"language\": \"python\", \"code\": \"print(6 * 7)\"}";
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--http2-prior-knowledge", "--max-time", "60"])
        .args(["--header", "Content-Type: application/json", "--data", body])
        .args(["--write-out", "\n%{http_version} %{http_code}", &url])
        .output()
        .expect("there is a curl");
    let response = String::from_utf8_lossy(&output.stdout);
    assert!(response.ends_with("\n2 200"), "{output:?}");
    assert!(response.contains("\"stdout\":\"42\\n\""), "{response}");
}
