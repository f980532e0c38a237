//! Standard input that is streamed to a running program.

use futures_util::{StreamExt as _, stream};

use super::*;

const ECHO: &str = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()\nprint('end')";
const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");

fn streamed(code: &str) -> Value {
    let mut body = python(code);
    body["stdin_stream"] = json!(true);
    body
}

/// Starts an execution, and returns the path of its report.
async fn start(server: &Server, code: &str) -> String {
    let accepted = server.post("/api/v1/execute?wait=false", &streamed(code)).await.expect(202);
    format!("/api/v1/execute/{}", accepted["id"].as_str().unwrap())
}

/// Sends these chunks, and the error if there is one at the end.
async fn send(
    server: &Server,
    path: &str,
    chunks: Vec<Result<&'static [u8], &'static str>>,
) -> TestResponse {
    let body = Body::from_stream(stream::iter(chunks));
    let path = format!("{path}/stdin");
    server.send(request(Method::POST, &path, &[OCTETS], body)).await
}

async fn report(server: &Server, path: &str) -> Value {
    server.get(&format!("{path}?wait=30")).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_reads_the_body_and_end_of_file_at_its_end() {
    let server = Server::start().await;
    let path = start(&server, ECHO).await;
    let sent = send(&server, &path, vec![Ok(b"one\n"), Ok(b"\xff\n"), Ok(b"two")]).await;
    assert_eq!(sent.status, 204, "{sent:?}");
    let report = report(&server, &path).await;
    assert_eq!(report["status"], "completed", "{report}");
    // Not valid UTF-8: Base64 of "one\n\xff\ntwoend\n".
    assert_eq!(report["stdout_base64"], "b25lCv8KdHdvZW5kCg==", "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_cancels_the_execution() {
    let server = Server::start().await;
    let path = start(&server, ECHO).await;
    send(&server, &path, vec![Ok(b"one\n"), Err("the connection is lost")]).await;
    let report = report(&server, &path).await;
    assert_eq!(report["status"], "cancelled", "{report}");
}

/// A client may wait for its own input, such as that of a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_program_ends_a_request_that_is_still_open() {
    let server = Server::start().await;
    let path = start(&server, "input()").await;
    let first = stream::once(async { Ok::<_, &'static str>(&b"one\n"[..]) });
    let body = Body::from_stream(first.chain(stream::pending()));
    let sent = server.send(request(Method::POST, &format!("{path}/stdin"), &[OCTETS], body)).await;
    assert_eq!(sent.status, 204, "{sent:?}");
    assert_eq!(report(&server, &path).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_takes_one_request_of_its_own_client() {
    let server = Server::start().await;
    let (owner, other) = (server.key(&[Scope::Execute]).await, server.key(&[Scope::Admin]).await);
    let headers = [("x-api-key", &*owner)];
    let code = "print(input(), flush=True)\nwhile True: pass";
    let accepted = server.post_with("/api/v1/execute?wait=false", &streamed(code), &headers).await;
    let path = format!("/api/v1/execute/{}", accepted.expect(202)["id"].as_str().unwrap());
    let send = async |key: &str, path: &str| {
        let headers = [OCTETS, ("x-api-key", key)];
        let body = Body::from("all of it\n");
        server.send(request(Method::POST, &format!("{path}/stdin"), &headers, body)).await
    };
    send(&other, &path).await.problem(404, "not_found");
    assert_eq!(send(&owner, &path).await.status, 204);
    let detail = send(&owner, &path).await.problem(404, "not_found");
    assert!(detail.contains("stdin_stream"), "{detail}");
    server.send(request(Method::DELETE, &path, &headers, Body::empty())).await.expect(200);
    let report = server.get_with(&format!("{path}?wait=30"), &headers).await.expect(200);
    assert_eq!(report["status"], "cancelled", "{report}");
    assert_eq!(send(&owner, &path).await.status, 204, "nobody reads it any more");
    let unknown = "/api/v1/execute/exec_00000000000000000000000000";
    send(&owner, unknown).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_whose_input_nobody_could_send_are_refused() {
    let server = Server::start().await;
    let detail =
        server.post("/api/v1/execute", &streamed(ECHO)).await.problem(400, "invalid_field");
    assert!(detail.starts_with("stdin_stream: ") && detail.contains("wait=false"), "{detail}");
    let mut both = streamed(ECHO);
    both["stdin"] = json!("one");
    let response = server.post("/api/v1/execute?wait=false", &both).await;
    let detail = response.problem(400, "invalid_field");
    assert!(detail.contains("'stdin'"), "{detail}");
    let batch = json!({ "requests": [streamed(ECHO)] });
    let results = server.post("/api/v1/batch?wait=false", &batch).await.expect(202);
    assert_eq!(results[0]["code"], "invalid_field", "{results}");
    let path = start(&server, ECHO).await;
    let text = [("content-type", "text/plain")];
    let body = Body::from("one");
    let response = server.send(request(Method::POST, &format!("{path}/stdin"), &text, body)).await;
    response.problem(415, "invalid_body");
    server.delete(&path).await.expect(200);
}
