use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

/// Maximum number of headers of an HTTP/1 request; 431 above.
const MAX_HEADERS: usize = 100;
/// Size of the read buffer, and so the maximum size of HTTP/1 headers (431 above). Also the size of the HTTP/2 send
/// buffer.
const BUFFER_SIZE: usize = 64 << 10;
/// Maximum size of HTTP/2 headers, announced to clients.
const MAX_HEADER_LIST_BYTES: u32 = 32 << 10;
/// Maximum number of concurrent requests on an HTTP/2 connection.
const MAX_STREAMS: u32 = 64;
/// Interval of HTTP/2 pings, and time to respond to one.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The protocol settings of HTTP/1 and HTTP/2. Timeouts are in [`connection`](super::connection), for both versions.
///
/// h2 bounds requests that are reset at once ("rapid reset"): it closes the connection after 20 that were not accepted
/// yet, or 1024 that were refused. WebSockets require HTTP/1.1: over HTTP/2, a connection with a silent WebSocket would
/// look idle.
pub(super) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_headers(MAX_HEADERS).max_buf_size(BUFFER_SIZE).header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(BUFFER_SIZE)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
