//! An OTLP collector for tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use sandbox_tests::wait::wait_for;

/// Exceeds the export interval of the server.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::answering("200 OK")
    }

    /// A collector that responds with 500.
    pub(crate) fn start_failing() -> Self {
        Self::answering("500 Internal Server Error")
    }

    fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let received = Arc::new(Mutex::new(Vec::new()));
        let bodies = Arc::clone(&received);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let body = handle(stream.expect("a connection can be accepted"), status);
                bodies.lock().expect("the lock is not poisoned").extend(body);
            }
        });
        Self { address, received }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of received exports.
    pub(crate) fn batches(&self) -> usize {
        self.received.lock().expect("the lock is not poisoned").len()
    }

    /// All received bodies.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.received.lock().expect("the lock is not poisoned").concat()
    }

    /// All received spans.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let bodies = self.received.lock().expect("the lock is not poisoned").clone();
        let requests = bodies.iter().map(|body| {
            ExportTraceServiceRequest::decode(&body[..]).expect("it is what OTLP says")
        });
        let resources = requests.flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| {
            let resource_attributes = resource.resource.as_ref().map(|found| &found.attributes);
            let name = resource_attributes.into_iter().flatten().find(|a| a.key == "service.name");
            let name = name.and_then(|name| name.value.clone()?.value);
            assert_eq!(name, Some(Value::StringValue("sandboxd".to_owned())));
            resource.scope_spans
        });
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// Waits for this many spans with this name, and returns all spans.
    pub(crate) fn wait_for(&self, name: &str, count: usize) -> Vec<Span> {
        let found = wait_for(TEST_TIMEOUT, || {
            let spans = self.spans();
            (spans.iter().filter(|span| span.name == name).count() >= count).then_some(spans)
        });
        found.unwrap_or_else(|| panic!("no {count} spans '{name}' in {:#?}", self.spans()))
    }
}

/// Reads a request, responds, and returns the body.
fn handle(stream: TcpStream, status: &str) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("the time is not zero");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        // The client closed the connection without a request.
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/x-protobuf\r\n"), "{head}");
    let (_, length) = head.split_once("\r\ncontent-length: ").expect("its length is told");
    let length = length.split("\r\n").next().expect("a split has a first part");
    let mut body = vec![0; length.parse().expect("a length is a number")];
    reader.read_exact(&mut body).expect("what was announced comes");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/x-protobuf\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    reader.get_mut().write_all(response.as_bytes()).expect("the client waits for it");
    Some(body)
}

/// An attribute of a span, as text.
pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(is_so) => Some(is_so.to_string()),
        other => panic!("{key} is {other:?}"),
    }
}
