use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::activity::Activity;
use super::linger;
use crate::serve::limits::Limits;

/// A peer that says nothing for so long is asked whether it is there, so often, and is gone if it does
/// not answer.
const SILENCE: Duration = Duration::from_mins(1);
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(15);
const MAX_PROBES: u32 = 4;

/// Small answers leave at once, and a peer that vanished is noticed even where nobody waits for it. A
/// connection that cannot be set so works all the same.
pub(super) fn prepare(stream: &TcpStream, limits: &Limits) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE);
    let _ = sockopt::set_tcp_keepintvl(stream, BETWEEN_QUESTIONS);
    let _ = sockopt::set_tcp_keepcnt(stream, MAX_PROBES);
    // What the kernel has taken and the peer has not is out of our sight: the kernel keeps the time.
    let limit = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = sockopt::set_tcp_user_timeout(stream, limit);
}

/// A socket that tells what passes through it, and holds its place for as long as it is open: also when
/// a WebSocket has taken it over.
pub(super) struct Watched {
    /// With its place. `None` once it is being closed.
    stream: Option<(TcpStream, OwnedSemaphorePermit)>,
    activity: Arc<Activity>,
    /// Whether it was closed in an orderly way from this side.
    is_shut_down: bool,
    /// Whether the peer has closed its side, or is gone.
    is_at_end: bool,
}

impl Watched {
    pub(super) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self { stream: Some((stream, place)), activity, is_shut_down: false, is_at_end: false }
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        let (stream, _) = self.stream.as_mut().expect("it is taken when this is dropped");
        Pin::new(stream)
    }

    fn told(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(_) => self.activity.wrote(),
            Poll::Pending => self.activity.blocked(),
        }
        written
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(self.stream().poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.activity.heard();
        } else {
            self.is_at_end = true;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(context, bytes);
        self.told(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write_vectored(context, slices);
        self.told(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(|(stream, _)| stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut_down = true;
        self.stream().poll_shutdown(context)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some((stream, place)) = self.stream.take()
            && self.is_shut_down
            && !self.is_at_end
            && !self.activity.is_abandoned()
        {
            linger::close(stream, place);
        }
    }
}
