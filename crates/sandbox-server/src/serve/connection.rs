//! One connection, from accept to close.
//!
//! Idle and slow connections are closed. [`Activity`] tracks what a connection waits for: the socket reports bytes in both
//! directions ([`MonitoredStream`]), requests report their start and the progress of their responses ([`ResponseBody`]).
//! The timeouts follow from that. Time in which the server works, such as while a program runs, does not count.

mod activity;
mod linger;
mod request_body;
mod response_body;
mod stream;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::http;
use super::idle::{ConnectionPermit, OpenConnections};
use super::limits::ConnectionLimits;
use super::tls::Tls;
use crate::api::Peer;
use activity::Activity;
use request_body::RequestBody;
use response_body::ResponseBody;
pub(super) use stream::ClientStream;
use stream::MonitoredStream;

/// Time for a graceful close: HTTP/2 sends GOAWAY with the last accepted request.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What all connections share.
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) limits: ConnectionLimits,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) open: OpenConnections,
}

/// Serves a connection until it is closed.
pub(super) async fn serve(
    stream: impl ClientStream,
    peer: Peer,
    permit: ConnectionPermit,
    shared: Arc<Shared>,
    stop: watch::Receiver<()>,
) {
    stream.configure(&shared.limits);
    let activity = Arc::new(Activity::new(&shared.limits));
    let stream = MonitoredStream::new(stream, Arc::clone(&activity), permit);
    let (Some(tls), Peer::Remote(_)) = (&shared.tls, peer) else {
        return serve_http(stream, peer, &shared, activity, stop).await;
    };
    match timeout(shared.limits.header_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_http(stream, peer, &shared, activity, stop).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake timed out"),
    }
}

/// Serves HTTP/1 or HTTP/2, depending on the first bytes of the client.
async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    shared: &Shared,
    activity: Arc<Activity>,
    mut stop: watch::Receiver<()>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let in_flight = Arc::clone(&activity).begin(request.version());
        let router = shared.router.clone();
        let request = RequestBody::wrap(request, Arc::clone(&activity));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let Ok(response) = router.oneshot(request).await;
            Ok::<_, Infallible>(response.map(|body| ResponseBody::new(body, in_flight)))
        }
    });
    let builder = http::builder();
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, error, "the connection failed");
                }
                return;
            }
            waited_for = activity.timed_out() => {
                tracing::debug!(%peer, "closed: timeout while waiting for {waited_for}");
                activity.expire();
                break;
            }
            _ = stop.changed(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    // The connection is closed even if this fails.
    let _ = timeout(CLOSE_TIMEOUT, connection).await;
}
