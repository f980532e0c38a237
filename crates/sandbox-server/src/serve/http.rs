use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;

/// Headers of a request of HTTP/1; one with more is answered 431.
const MAX_HEADERS: usize = 100;
/// What is read ahead of a request, and so the longest head: longer ones are answered 431. Also what is
/// taken of an answer before the client has taken it.
const BUFFER: usize = 64 << 10;
/// The same for HTTP/2, where it is announced and kept to by clients.
const MAX_HEADER_LIST_BYTES: u32 = 32 << 10;
/// Requests at once on one connection of HTTP/2.
const MAX_STREAMS: u32 = 64;
/// How often a peer of HTTP/2 is asked whether it is there, and how long it may take to say so.
const BETWEEN_PINGS: Duration = Duration::from_secs(20);
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);

/// How HTTP is spoken. Waiting has its limits elsewhere, for both versions alike.
///
/// Requests that are made and taken back at once ("rapid reset") are bounded by h2: 20 that we have not
/// looked at yet, 1024 that we had to refuse, and then the connection is closed. WebSockets come over
/// HTTP/1.1, as every client can: a stream of HTTP/2 that is one would look idle here.
pub(super) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_headers(MAX_HEADERS).max_buf_size(BUFFER).header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(BUFFER)
        .keep_alive_interval(BETWEEN_PINGS)
        .keep_alive_timeout(HEADER_TIMEOUT);
    builder
}
