//! Bodies of requests that are answered before they are read.
//!
//! A client that still sends when it is refused has to get rid of its body, or it never comes to read the
//! answer: HTTP/1 ends the connection then, and HTTP/2 resets the stream, and many clients report that instead
//! of the 401 or 413 they were sent. So what a handler does not read is read and thrown away, up to a bound.

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

/// The most that is read and thrown away of one body.
const MAX_DISCARDED: usize = 64 << 20;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the client may send nothing meanwhile.
const DISCARD_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of a request. What is left of it when it is dropped is discarded.
pub(super) struct RequestBody {
    /// `None` once it is not ours any more.
    body: Option<Incoming>,
    /// Whether the client waits to be asked for it: one that was not asked sends nothing.
    is_held_back: bool,
    activity: Arc<Activity>,
    version: Version,
}

impl RequestBody {
    /// Takes it out of a request.
    pub(super) fn of(request: Request<Incoming>, activity: Arc<Activity>) -> Request<Self> {
        let is_held_back = request.headers().contains_key(EXPECT);
        let version = request.version();
        request.map(|body| Self { body: Some(body), is_held_back, activity, version })
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_held_back = false;
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
        if self.is_held_back {
            return;
        }
        // Without a runtime the server has come to its end.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        // Meanwhile the connection is not one that waits for its next request.
        let request = Arc::clone(&self.activity).begin(self.version);
        runtime.spawn(async move {
            // Whoever sends more than that is cut off.
            let _ = timeout(DISCARD_TIMEOUT, discard(body)).await;
            drop(request);
        });
    }
}

async fn discard(body: Incoming) {
    let mut body = pin!(body);
    let mut left = MAX_DISCARDED;
    while let Ok(Some(Ok(frame))) = timeout(DISCARD_IDLE_TIMEOUT, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
