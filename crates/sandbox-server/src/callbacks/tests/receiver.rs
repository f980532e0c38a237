//! A receiver on a real socket that answers as a test wants it to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use futures_util::stream;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::within;

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Status(u16),
    /// To another path of the same receiver.
    Redirect,
    /// A good one that never stops.
    Endless,
    /// None.
    Never,
}

/// What came.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("it is text"))
    }
}

/// Answers as told, and 200 when it was told no more.
pub(super) struct Receiver {
    pub(super) port: u16,
    received: mpsc::UnboundedReceiver<Received>,
    server: JoinHandle<io::Result<()>>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (router, received) = router(replies);
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, received, server }
    }

    /// One that speaks TLS as `localhost`, and the certificate to trust.
    pub(super) async fn start_tls() -> (Self, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let made = made.expect("a certificate can be made");
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("it is a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS can be spoken")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .expect("they belong together");
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = tcp.local_addr().expect("it is bound").port();
        let (router, received) = router([]);
        let listener = TlsListener { tcp, acceptor: Arc::new(config).into() };
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        (Self { port, received, server }, certificate)
    }

    /// What comes next, whenever it does.
    pub(super) async fn next(&mut self) -> Received {
        within(self.received.recv()).await.expect("it is being served")
    }

    /// Whether nothing came that was not asked for with [`Receiver::next`].
    pub(super) fn is_quiet(&mut self) -> bool {
        self.received.try_recv().is_err()
    }
}

#[derive(Clone)]
struct Shared {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    tell: mpsc::UnboundedSender<Received>,
}

fn router(replies: impl IntoIterator<Item = Reply>) -> (Router, mpsc::UnboundedReceiver<Received>) {
    let (tell, received) = mpsc::unbounded_channel();
    let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
    (Router::new().fallback(answer).with_state(Shared { replies, tell }), received)
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("it comes whole");
    let path = parts.uri.path().to_owned();
    let reply = shared.replies.lock().expect("nobody panics with it").pop_front();
    // Nobody listens any more if the test is over.
    let _ = shared.tell.send(Received { path, headers: parts.headers, body });
    match reply.unwrap_or(Reply::Status(200)) {
        Reply::Status(status) => {
            StatusCode::from_u16(status).expect("it is a status").into_response()
        }
        Reply::Redirect => (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(),
        Reply::Endless => {
            let bytes = || Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4096]));
            Body::from_stream(stream::repeat_with(bytes)).into_response()
        }
        Reply::Never => std::future::pending().await,
    }
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.tcp.accept().await.expect("connections can be taken");
            // A client that does not trust us goes away.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
