use std::net::SocketAddr;

use futures_util::StreamExt as _;
use tokio::net::TcpListener;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::*;

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// The ids and events of a complete stream.
fn parse(response: &TestResponse) -> Vec<(u64, Value)> {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("content-type"), "text/event-stream");
    let text = std::str::from_utf8(&response.body).unwrap();
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    let event = |block: &str| {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("there is no {name} in {block}")).trim().to_owned()
        };
        (field("id:").parse().unwrap(), serde_json::from_str(&field("data:")).unwrap())
    };
    blocks.map(event).collect()
}

/// Starts an execution, and returns the path of its stream.
async fn start(server: &Server, body: &Value) -> String {
    let response = server.post("/api/v1/execute?wait=false", body).await;
    response.expect(202);
    format!("{}/stream", response.header("location"))
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_order_and_end_with_the_report() {
    let server = Server::start().await;
    let path =
        start(&server, &python("print('out'); import sys; print('err', file=sys.stderr)")).await;
    let events = parse(&server.get_with(&path, &[EVENTS]).await);
    for (place, (id, event)) in (1..).zip(&events) {
        assert_eq!((*id, &event["seq"]), (place, &json!(place)), "{event}");
    }
    let types: Vec<_> = events.iter().map(|(_, event)| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[0], "queued");
    for kind in ["stage", "stdout", "stderr"] {
        assert!(types.contains(&kind), "{types:?}");
    }
    assert_eq!(types.iter().position(|kind| *kind == "report"), Some(types.len() - 1));
    let (_, last) = events.last().unwrap();
    assert_eq!(last["report"]["stdout"], "out\n");
    // The stored events are the same.
    assert_eq!(parse(&server.get_with(&path, &[EVENTS]).await), events);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_execution_streams_its_events_in_the_response() {
    let server = Server::start().await;
    let response = server.post_with("/api/v1/execute", &python("print('out')"), &[EVENTS]).await;
    let events = parse(&response);
    assert_eq!(events[0].1, json!({"seq": 1, "type": "queued"}));
    let path = response.header("location");
    let report = server.get(&format!("{path}?wait=30")).await.expect(200);
    assert_eq!(report["stdout"], "out\n");
    assert_eq!(events.last().unwrap().1["report"], report);
    // The stored events are the same.
    assert_eq!(parse(&server.get_with(&format!("{path}/stream"), &[EVENTS]).await), events);
    // Whoever reads both gets the report, as from servers without streams.
    let both = [("accept", "application/json, text/event-stream")];
    let report = server.post_with("/api/v1/execute", &python("print(1)"), &both).await.expect(200);
    assert_eq!(report["stdout"], "1\n");
    let waits = server.post_with("/api/v1/execute?wait=1", &python("1"), &[EVENTS]).await;
    assert!(waits.problem(400, "invalid_field").starts_with("wait: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_events_of_the_first() {
    let server = Server::start().await;
    let headers = [EVENTS, ("idempotency-key", "once")];
    let post = async |code| server.post_with("/api/v1/execute", &python(code), &headers).await;
    let (first, meanwhile) = tokio::join!(post("print(1)"), post("print(1)"));
    let afterwards = post("print(1)").await;
    for other in [meanwhile, afterwards] {
        assert_eq!(other.header("location"), first.header("location"));
        assert_eq!(parse(&other), parse(&first));
    }
    post("print(2)").await.problem(409, "idempotency_conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_streamed_at_once_have_the_id_for_the_standard_input() {
    let server = Server::start().await;
    let mut body = python("print(input())");
    body["stdin_stream"] = json!(true);
    let headers = [EVENTS, ("content-type", "application/json")];
    let post = request(Method::POST, "/api/v1/execute", &headers, Body::from(body.to_string()));
    let response = server.router.clone().oneshot(post).await.unwrap();
    let path = response.headers()["location"].to_str().unwrap().to_owned();
    let octets = [("content-type", "application/octet-stream")];
    let path = format!("{path}/stdin");
    let sent = server.send(request(Method::POST, &path, &octets, Body::from("line\n"))).await;
    assert_eq!(sent.status, 204, "{sent:?}");
    let events = response.into_body().collect().await.unwrap().to_bytes();
    let events = std::str::from_utf8(&events).unwrap();
    // In the report: the program may write it in parts.
    assert!(events.contains(r#","stdout":"line\n","#), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_resumes_after_the_last_event() {
    let server = Server::start().await;
    let path = start(&server, &python("for i in range(5): print(i, flush=True)")).await;
    let events = parse(&server.get_with(&path, &[EVENTS]).await);
    let last = events.len();
    for received in 1..last {
        let from = format!("{path}?from={}", received + 1);
        assert_eq!(parse(&server.get_with(&from, &[EVENTS]).await), events[received..]);
        let id = received.to_string();
        let resumed = server.get_with(&path, &[EVENTS, ("last-event-id", &id)]).await;
        assert_eq!(parse(&resumed), events[received..]);
        // `Last-Event-ID` takes precedence over `from`.
        let both = format!("{path}?from=1");
        let resumed = server.get_with(&both, &[EVENTS, ("last-event-id", &id)]).await;
        assert_eq!(parse(&resumed), events[received..]);
    }
    // After the last event: 204, which stops a browser from reconnecting.
    let id = last.to_string();
    let response = server.get_with(&path, &[EVENTS, ("last-event-id", &id)]).await;
    assert_eq!(response.status, 204);
    assert!(response.body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_stream_request_is_refused() {
    let server = Server::start().await;
    let path = start(&server, &python("")).await;
    let detail = server.get(&path).await.problem(426, "invalid_field");
    assert!(detail.contains("text/event-stream"), "{detail}");
    for query in ["from=x", "from=-1", "form=1"] {
        let response = server.get_with(&format!("{path}?{query}"), &[EVENTS]).await;
        response.problem(400, "invalid_field");
    }
    let response = server.get_with(&path, &[EVENTS, ("last-event-id", "x")]).await;
    response.problem(400, "invalid_field");
}

/// A WebSocket needs a real connection.
async fn listen(server: &Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = server.router.clone().into_make_service();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_sends_the_same_events_and_resumes() {
    let server = Server::start().await;
    let path = start(&server, &python("print('out')")).await;
    let address = listen(&server).await;
    let receive = async |query: &str| {
        let (socket, _) = connect_async(format!("ws://{address}{path}{query}")).await.unwrap();
        let messages: Vec<_> = socket.map(Result::unwrap).collect().await;
        let mut events: Vec<Value> = Vec::new();
        let mut closed = None;
        for message in messages {
            match message {
                Message::Text(text) => events.push(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => closed = frame.map(|frame| u16::from(frame.code)),
                _ => {}
            }
        }
        assert_eq!(closed, Some(1000));
        events
    };
    let events = receive("").await;
    let sent: Vec<_> = parse(&server.get_with(&path, &[EVENTS]).await);
    assert_eq!(events, sent.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["type"], "report");
    assert_eq!(receive("?from=2").await, events[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_from_another_origin_is_refused() {
    let server = Server::start().await;
    let path = start(&server, &python("")).await;
    let address = listen(&server).await;
    let open = async |origin: String| {
        let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
        request.headers_mut().insert("origin", HeaderValue::from_str(&origin).unwrap());
        connect_async(request).await
    };
    open(format!("http://{address}")).await.unwrap();
    match open("https://evil.example".to_owned()).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 403),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_does_not_cancel() {
    let server = Server::start().await;
    let path = start(&server, &endless()).await;
    let address = listen(&server).await;
    let (mut socket, _) = connect_async(format!("ws://{address}{path}")).await.unwrap();
    socket.next().await.unwrap().unwrap();
    drop(socket);
    let execution = path.trim_end_matches("/stream");
    let report = server.get(execution).await.expect(200);
    assert!(report["exit_code"].is_null(), "{report}");
    server.delete(execution).await.expect(200);
    let report = server.get(&format!("{execution}?wait=30")).await.expect(200);
    assert_eq!(report["status"], "cancelled", "{report}");
}
