//! One connection, from its first byte to its last.
//!
//! Nobody holds a place for doing nothing. [`Activity`] knows what a connection is waiting for: the
//! socket tells it when bytes come and go ([`Watched`]), requests tell it when they begin and when their
//! answers are taken ([`Answer`]). From that follows until when the next thing has to happen. Waiting
//! for ourselves, such as for a program that is silent, has no end here.

mod activity;
mod answer;
mod linger;
mod stream;
mod unread;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::http;
use super::limits::Limits;
use super::tls::Tls;
use activity::Activity;
use answer::Answer;
use stream::Watched;
use unread::RequestBody;

/// A connection that has to go may say so: HTTP/2 names the last request that was heard.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What all connections have in common.
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) limits: Limits,
    pub(super) tls: Option<Arc<Tls>>,
}

/// Serves one connection until its end.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    shared: Arc<Shared>,
    stop: watch::Receiver<()>,
) {
    stream::prepare(&stream, &shared.limits);
    let activity = Arc::new(Activity::new(&shared.limits));
    let stream = Watched::new(stream, Arc::clone(&activity), place);
    let Some(tls) = &shared.tls else {
        return speak(stream, peer, &shared, activity, stop).await;
    };
    match timeout(shared.limits.header_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, peer, &shared, activity, stop).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
    }
}

/// Speaks HTTP, whichever version the client begins with.
async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    shared: &Shared,
    activity: Arc<Activity>,
    mut stop: watch::Receiver<()>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let request_began = Arc::clone(&activity).begin(request.version());
        let router = shared.router.clone();
        let request = RequestBody::of(request, Arc::clone(&activity));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            let Ok(response) = router.oneshot(request).await;
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, request_began)))
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
            waited_for = activity.overdue() => {
                tracing::debug!(%peer, "closed: waited too long for {waited_for}");
                activity.abandon();
                break;
            }
            _ = stop.changed(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    // Whatever becomes of it, the connection ends here.
    let _ = timeout(LAST_WORDS, connection).await;
}
