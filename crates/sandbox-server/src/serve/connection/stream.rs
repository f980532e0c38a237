use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::activity::Activity;
use super::linger;
use crate::serve::idle::ConnectionPermit;
use crate::serve::limits::ConnectionLimits;

/// TCP keep-alive: idle time before the first probe, interval of the probes, and their number.
const KEEP_ALIVE_IDLE: Duration = Duration::from_mins(1);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 4;

/// A connected socket.
pub(crate) trait ClientStream:
    AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static
{
    /// Sets socket options. The connection works without them, so errors are ignored.
    fn configure(&self, limits: &ConnectionLimits);
}

impl ClientStream for TcpStream {
    /// No delay for small responses, and detection of dead peers.
    fn configure(&self, limits: &ConnectionLimits) {
        let _ = self.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(self, true);
        let _ = sockopt::set_tcp_keepidle(self, KEEP_ALIVE_IDLE);
        let _ = sockopt::set_tcp_keepintvl(self, KEEP_ALIVE_INTERVAL);
        let _ = sockopt::set_tcp_keepcnt(self, KEEP_ALIVE_PROBES);
        // The server cannot observe data in the kernel's send buffer: the kernel applies the write timeout to it.
        let limit = u32::try_from(limits.write_timeout.as_millis()).unwrap_or(u32::MAX);
        let _ = sockopt::set_tcp_user_timeout(self, limit);
    }
}

impl ClientStream for UnixStream {
    fn configure(&self, _: &ConnectionLimits) {}
}

/// A socket that reports reads and writes to [`Activity`], and holds the connection's permit while it is open, also after
/// an upgrade to a WebSocket.
pub(super) struct MonitoredStream<S: ClientStream> {
    /// The socket and its permit. `None` once it is dropped.
    stream: Option<(S, ConnectionPermit)>,
    activity: Arc<Activity>,
    /// Whether this side has shut down the connection.
    is_shut_down: bool,
    /// Whether the peer has closed its side or disconnected.
    is_at_end: bool,
}

impl<S: ClientStream> MonitoredStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>, permit: ConnectionPermit) -> Self {
        Self { stream: Some((stream, permit)), activity, is_shut_down: false, is_at_end: false }
    }

    fn stream(&mut self) -> Pin<&mut S> {
        let (stream, _) = self.stream.as_mut().expect("only drop takes it");
        Pin::new(stream)
    }

    fn record(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(_) => self.activity.sent(),
            Poll::Pending => self.activity.blocked(),
        }
        written
    }
}

impl<S: ClientStream> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(self.stream().poll_read(context, buffer));
        if buffer.filled().len() > before {
            self.activity.received();
        } else {
            self.is_at_end = true;
        }
        Poll::Ready(read)
    }
}

impl<S: ClientStream> AsyncWrite for MonitoredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(context, bytes);
        self.record(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write_vectored(context, slices);
        self.record(written)
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

impl<S: ClientStream> Drop for MonitoredStream<S> {
    fn drop(&mut self) {
        if let Some((stream, permit)) = self.stream.take()
            && self.is_shut_down
            && !self.is_at_end
            && !self.activity.is_expired()
        {
            linger::close(stream, permit);
        }
    }
}
