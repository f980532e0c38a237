//! Single requests: what is sent, and what each response or failure becomes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use sandbox_api::{Accepted, Code, ExecuteRequest, Problem};
use sandbox_client::{ApiKey, Client, ClientError, Error, Timeouts};

use crate::server::{ScriptedServer, Step, response, send};

fn runtimes(steps: Vec<Step>) -> Result<Vec<String>, Error> {
    let server = ScriptedServer::new(vec![steps]);
    let runtimes = server.client().runtimes()?;
    Ok(runtimes.into_iter().map(|runtime| runtime.language).collect())
}

fn execute(scripts: Vec<Vec<Step>>) -> (Result<Accepted, Error>, Vec<String>) {
    let server = ScriptedServer::exactly(scripts);
    let result = server.client().execute(&ExecuteRequest::default(), "exec_0");
    (result, server.requests())
}

#[test]
fn a_request_has_the_key_and_the_accepted_types() {
    let server = ScriptedServer::new(vec![response("200 OK", "[]")]);
    let address = server.url().to_string().replace("http://", "");
    server.client().runtimes().unwrap();
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /api/v1/runtimes HTTP/1.1\r\n"), "{request}");
    for header in [
        "authorization: Bearer sk_1",
        "accept: application/json",
        &format!("host: {address}"),
        concat!("user-agent: sandbox-run/", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
}

#[test]
fn a_socket_is_used_like_an_address() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s o c k e t");
    let url = format!("unix:{}", path.display());
    let client = || Client::new(url.parse().unwrap(), None).unwrap();
    let error = client().runtimes().unwrap_err().to_string();
    assert_eq!(error, format!("connection to {url} failed: no such socket; is sandboxd running?"));

    let listener = UnixListener::bind(&path).unwrap();
    let requests = std::thread::spawn(move || {
        // The connection that the client checks.
        drop(listener.accept().unwrap());
        let (stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut lines = BufReader::new(&stream);
        while !request.ends_with("\r\n\r\n") {
            lines.read_line(&mut request).unwrap();
        }
        (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]").unwrap();
        request
    });
    assert!(client().runtimes().unwrap().is_empty());
    let request = requests.join().unwrap();
    assert!(request.starts_with("GET /api/v1/runtimes HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: localhost\r\n"), "{request}");
}

/// A program in a sandbox that has the user's id can put a socket where the user expects a server.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn a_socket_of_a_process_in_another_namespace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let listen = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print(flush=True)
while True:
    connection, _ = s.accept()
    if connection.recv(10000):
        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n[]')";
    let asked = |name: &str, around: &[&str]| {
        let path = directory.path().join(name);
        let mut line = around.iter().copied().chain(["/usr/bin/python3", "-c", listen]);
        let mut process = Command::new(line.next().unwrap())
            .args(line)
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        let client = Client::new(format!("unix:{}", path.display()).parse().unwrap(), None);
        let result = (ready == "\n").then(|| client.unwrap().runtimes());
        // The kernel kills what is inside with it.
        process.kill().unwrap();
        process.wait().unwrap();
        result
    };
    assert!(asked("outside", &[]).unwrap().unwrap().is_empty());
    let unshare = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"];
    match asked("inside", &unshare) {
        Some(inside) => {
            let error = inside.unwrap_err().to_string();
            assert!(error.ends_with("its process is in another namespace"), "{error}");
        }
        None => eprintln!("skipped: this user cannot create namespaces"),
    }
}

#[test]
fn responses_are_read_in_every_framing() {
    let body = r#"[{"language": "c", "colour": "red"}]"#;
    let chunks = format!("5\r\n{}\r\n1f\r\n{}\r\n0\r\n\r\n", &body[..5], &body[5..]);
    let named = format!(r#"{{"runtimes": {body}}}"#);
    for text in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"),
        format!("HTTP/1.1 200\r\n\r\n{named}"),
        format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{body}"),
    ] {
        assert_eq!(runtimes(vec![send(&text)]).unwrap(), ["c"], "{text}");
    }
}

#[test]
fn invalid_responses_are_named() {
    let long = "a".repeat(1 << 20);
    for (text, part) in [
        ("SSH-2.0-OpenSSH\r\n\r\n", "is it a sandboxd?"),
        ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "is it a sandboxd?"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is it a sandboxd?"),
        (&format!("HTTP/1.1 200 OK\r\nA: {long}\r\n\r\n"), "is it a sandboxd?"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "an invalid response: "),
        ("HTTP/1.1 200 OK\r\n\r\n{}", "an invalid list of languages: "),
    ] {
        let error = runtimes(vec![send(text)]).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{text:.99}: {error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_response_that_is_cut_off_is_an_error() {
    for text in [
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n",
    ] {
        let error = runtimes(vec![send(text)]).unwrap_err();
        assert!(matches!(error, Error::Closed { .. }), "{text:?}: {error:?}");
    }
}

#[test]
fn a_slow_response_is_a_timeout() {
    for beginning in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
        let server = ScriptedServer::new(vec![vec![send(beginning), Step::AwaitClose]]);
        let response = Duration::from_millis(100);
        let client = server.client_with(Timeouts { response, ..Timeouts::default() });
        let error = client.runtimes().unwrap_err();
        drop(client);
        assert!(matches!(error, Error::Timeout { .. }), "{beginning:?}: {error:?}");
    }
}

#[test]
fn an_unreachable_server_is_named() {
    let server = ScriptedServer::new(vec![]);
    let (client, url) = (server.client(), server.url());
    drop(server);
    let error = client.runtimes().unwrap_err();
    let refused = format!("connection to {url} failed: connection refused; is sandboxd running?");
    assert_eq!(error.to_string(), refused);
}

#[test]
fn refusals_are_explained() {
    let problem =
        serde_json::to_string(&Problem::new(Code::QueueFull, "the queue is full")).unwrap();
    let long = "x".repeat(5000);
    for (status, body, expected) in [
        ("503 Later", problem.as_str(), "the queue is full"),
        ("404 No", "Not Found", "URL responded with status 404: Not Found"),
        ("500 Oh", &long, "URL responded with status 500"),
        ("401 No", &problem, "URL rejected the API key"),
    ] {
        let server = ScriptedServer::new(vec![response(status, body)]);
        let error = server.client().runtimes().unwrap_err().to_string();
        assert_eq!(error.replace(&server.url().to_string(), "URL"), expected);
    }
    let server = ScriptedServer::new(vec![response("401 No", "")]);
    let error = Client::new(server.url(), None).unwrap().runtimes().unwrap_err();
    assert!(matches!(error, Error::KeyRequired { .. }), "{error:?}");
}

#[test]
fn redirects_are_not_followed() {
    let other = ScriptedServer::new(vec![]);
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\n\r\n", other.url());
    let error = runtimes(vec![send(head)]).unwrap_err();
    assert!(matches!(error, Error::Refused { status: 302, .. }), "{error:?}");
}

#[test]
fn an_invalid_key_is_refused_and_not_printed() {
    let key = ApiKey::from("two words".to_owned());
    let error = Client::new("http://box".parse().unwrap(), Some(&key)).unwrap_err();
    assert!(matches!(error, ClientError::Key(_)) && !format!("{error:?}").contains("two"));
}

#[test]
fn an_execution_is_submitted_again_under_the_same_key_if_the_connection_breaks() {
    let receipt = response("202 Accepted", r#"{"id":"exec_1","status":"queued"}"#);
    let received = |steps| std::iter::once(Step::Receive).chain(steps).collect();
    let (accepted, requests) =
        execute(vec![received(vec![send("HTTP/1.1 20")]), received(receipt)]);
    assert_eq!(accepted.unwrap().id, "exec_1");
    assert!(
        requests[0].starts_with("POST /api/v1/execute?wait=false HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(requests[0].contains("\r\nidempotency-key: exec_0\r\n"), "{requests:?}");
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn an_id_that_is_not_a_name_is_refused() {
    for body in ["[]", r#"{"id":"../x","status":"queued"}"#] {
        let steps = std::iter::once(Step::Receive).chain(response("202 OK", body)).collect();
        let error = execute(vec![steps]).0.unwrap_err().to_string();
        assert!(error.contains("sent an invalid response to the request: "), "{error}");
    }
}

#[test]
fn a_refusal_counts_before_the_request_is_sent_completely() {
    let problem = serde_json::to_string(&Problem::new(Code::CodeTooLarge, "too large")).unwrap();
    let refusal = response("413 Large", &problem).into_iter().chain([Step::Linger]);
    let steps = std::iter::once(Step::ReceiveHead).chain(refusal).collect();
    let server = ScriptedServer::exactly(vec![steps]);
    let code = Some("x".repeat(8 << 20));
    let request = ExecuteRequest { code, ..ExecuteRequest::default() };
    let error = server.client().execute(&request, "exec_0").unwrap_err();
    assert!(matches!(error, Error::Refused { status: 413, .. }), "{error:?}");
}
