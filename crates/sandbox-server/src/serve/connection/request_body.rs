//! Request bodies that are discarded if the handler does not read them.
//!
//! Many clients send the whole body before they read the response. If the server responds early, with a 401 or 413, and
//! does not read the rest, HTTP/1 closes the connection and HTTP/2 resets the stream: the client reports that instead of
//! the response. So the server reads and discards the rest of a body, up to a limit.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{Request, Version};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::activity::Activity;

/// Maximum size of the discarded rest of a body.
const MAX_DISCARDED_BYTES: usize = 64 << 20;
/// Time to discard it.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which the client sends nothing, before the server gives up.
const DISCARD_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A request body. Dropping it discards the unread rest.
pub(super) struct RequestBody {
    /// `None` once it is complete.
    body: Option<Incoming>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    awaits_continue: bool,
    activity: Arc<Activity>,
    version: Version,
}

impl RequestBody {
    /// Wraps the body of a request.
    pub(super) fn wrap(request: Request<Incoming>, activity: Arc<Activity>) -> Request<Self> {
        let awaits_continue = request.headers().contains_key(EXPECT);
        let version = request.version();
        request.map(|body| Self { body: Some(body), awaits_continue, activity, version })
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.awaits_continue = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        if self.awaits_continue {
            return;
        }
        // There is no runtime once the server has stopped.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        // The connection is not idle while the rest is discarded.
        let request = Arc::clone(&self.activity).begin(self.version);
        runtime.spawn(async move {
            // Above the limits, the connection is closed.
            let _ = timeout(DISCARD_TIMEOUT, discard(body)).await;
            drop(request);
        });
    }
}

async fn discard(body: Incoming) {
    let mut body = pin!(body);
    let mut remaining = MAX_DISCARDED_BYTES;
    while let Ok(Some(Ok(frame))) = timeout(DISCARD_IDLE_TIMEOUT, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match remaining.checked_sub(length) {
            Some(rest) => remaining = rest,
            None => return,
        }
    }
}
