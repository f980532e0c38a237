use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Version;
use tokio::time::{Instant, sleep_until};

use crate::serve::limits::ConnectionLimits;

/// The state of a connection, from which its timeouts follow.
pub(super) struct Activity {
    limits: ConnectionLimits,
    state: Mutex<State>,
    is_expired: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// Requests whose responses are not complete.
    requests: usize,
    /// Those of them with a ready chunk that the connection does not take, because the client does not read.
    stalled: usize,
    /// When a request arrived or a chunk of a response was taken.
    last_progress: Instant,
    /// Since when the socket's send buffer is full, if it is.
    blocked_since: Option<Instant>,
    /// Since when the headers of a request, or a TLS handshake, are incomplete.
    header_since: Option<Instant>,
    /// With HTTP/2, bytes between requests can be control frames.
    is_http2: bool,
}

/// What the client has to do, and by when.
struct Waiting {
    since: Instant,
    limit: Duration,
    what: &'static str,
}

const REQUEST_HEADERS: &str = "the headers of a request";
const NEXT_REQUEST: &str = "the next request";
const CLIENT_READ: &str = "the client to read";

/// A request, from its headers to the last byte of its response.
pub(super) struct InFlight {
    activity: Arc<Activity>,
    is_stalled: bool,
}

impl Activity {
    /// A new connection: the header timeout starts at once.
    pub(super) fn new(limits: &ConnectionLimits) -> Self {
        let last_progress = Instant::now();
        let state = State {
            requests: 0,
            stalled: 0,
            last_progress,
            blocked_since: None,
            header_since: Some(last_progress),
            is_http2: false,
        };
        Self { limits: *limits, state: Mutex::new(state), is_expired: AtomicBool::new(false) }
    }

    /// The socket received bytes.
    pub(super) fn received(&self) {
        let mut state = self.state();
        if state.requests == 0 && state.header_since.is_none() && !state.is_http2 {
            state.header_since = Some(Instant::now());
        }
    }

    /// The socket sent bytes. This is progress too: a buffered response is sent after its last chunk was taken.
    pub(super) fn sent(&self) {
        let mut state = self.state();
        state.blocked_since = None;
        state.last_progress = Instant::now();
    }

    /// The socket's send buffer is full.
    pub(super) fn blocked(&self) {
        self.state().blocked_since.get_or_insert_with(Instant::now);
    }

    /// The headers of a request are complete.
    pub(super) fn begin(self: Arc<Self>, version: Version) -> InFlight {
        let mut state = self.state();
        state.requests += 1;
        state.last_progress = Instant::now();
        state.header_since = None;
        state.is_http2 = version == Version::HTTP_2;
        drop(state);
        InFlight { activity: self, is_stalled: false }
    }

    /// Marks the connection as timed out: it is closed without lingering.
    pub(super) fn expire(&self) {
        self.is_expired.store(true, Ordering::SeqCst);
    }

    /// Whether the connection has timed out.
    pub(super) fn is_expired(&self) -> bool {
        self.is_expired.load(Ordering::SeqCst)
    }

    /// Waits for a timeout, and returns what the connection was waiting for.
    pub(super) async fn timed_out(&self) -> &'static str {
        let ConnectionLimits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        // No timeout is shorter than this interval, so none that starts during the sleep can expire before its end.
        let interval = header_timeout.min(idle_timeout).min(write_timeout);
        loop {
            let now = Instant::now();
            let waiting = self.waiting();
            let deadline = waiting.as_ref().map(|waiting| waiting.since + waiting.limit);
            match waiting {
                Some(waiting) if deadline <= Some(now) => return waiting.what,
                _ => sleep_until(deadline.unwrap_or(now + interval).min(now + interval)).await,
            }
        }
    }

    /// What the connection waits for, if it waits for the client.
    fn waiting(&self) -> Option<Waiting> {
        let ConnectionLimits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        let (since, limit, what) = match *self.state() {
            State { blocked_since: Some(since), .. } => (since, write_timeout, CLIENT_READ),
            State { requests: 0, header_since: Some(since), .. } => {
                (since, header_timeout, REQUEST_HEADERS)
            }
            State { requests: 0, last_progress, .. } => (last_progress, idle_timeout, NEXT_REQUEST),
            // With HTTP/2, the client's flow-control window is full, not the socket. If the server works on another
            // request, the connection stays open: clients behind a proxy share one.
            State { requests, stalled, last_progress, .. } if requests == stalled => {
                (last_progress, write_timeout, CLIENT_READ)
            }
            State { .. } => return None,
        };
        Some(Waiting { since, limit, what })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    /// The connection polled the response body; `is_ready` if it got a chunk.
    pub(super) fn polled(&mut self, is_ready: bool) {
        let mut state = self.activity.state();
        state.last_progress = Instant::now();
        match (self.is_stalled, is_ready) {
            (false, true) => state.stalled += 1,
            (true, false) => state.stalled -= 1,
            _ => {}
        }
        self.is_stalled = is_ready;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.polled(false);
        self.activity.state().requests -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Duration = Duration::from_secs(1);
    const IDLE: Duration = Duration::from_secs(10);
    const WRITE: Duration = Duration::from_secs(3);

    fn activity() -> Arc<Activity> {
        let limits = ConnectionLimits {
            connections: 1,
            header_timeout: HEADER,
            idle_timeout: IDLE,
            write_timeout: WRITE,
        };
        Arc::new(Activity::new(&limits))
    }

    /// What the connection waits for, and the timeout.
    fn waits(activity: &Activity) -> Option<(&'static str, Duration)> {
        activity.waiting().map(|waiting| (waiting.what, waiting.limit))
    }

    #[test]
    fn a_new_connection_has_the_header_timeout() {
        let activity = activity();
        assert_eq!(waits(&activity), Some((REQUEST_HEADERS, HEADER)));
        let since = activity.waiting().map(|waiting| waiting.since);
        activity.received();
        activity.sent();
        let later = activity.waiting().map(|waiting| waiting.since);
        assert_eq!(since, later, "bytes do not extend it");
    }

    #[test]
    fn between_requests_the_idle_timeout_applies() {
        let activity = activity();
        drop(Arc::clone(&activity).begin(Version::HTTP_11));
        assert_eq!(waits(&activity), Some((NEXT_REQUEST, IDLE)));
        activity.received();
        assert_eq!(waits(&activity), Some((REQUEST_HEADERS, HEADER)));
    }

    #[test]
    fn http2_control_frames_do_not_start_a_request() {
        let activity = activity();
        drop(Arc::clone(&activity).begin(Version::HTTP_2));
        activity.received();
        assert_eq!(waits(&activity), Some((NEXT_REQUEST, IDLE)));
    }

    #[test]
    fn there_is_no_timeout_while_the_server_works() {
        let activity = activity();
        let mut request = Arc::clone(&activity).begin(Version::HTTP_11);
        activity.received();
        assert_eq!(waits(&activity), None, "no response yet");
        request.polled(true);
        request.polled(false);
        assert_eq!(waits(&activity), None, "a part of the response");
    }

    #[test]
    fn a_client_that_does_not_read_has_the_write_timeout() {
        let activity = activity();
        let mut request = Arc::clone(&activity).begin(Version::HTTP_2);
        request.polled(true);
        request.polled(true);
        assert_eq!(waits(&activity), Some((CLIENT_READ, WRITE)));
        let other = Arc::clone(&activity).begin(Version::HTTP_2);
        assert_eq!(waits(&activity), None, "the server works on another request");
        activity.blocked();
        assert_eq!(waits(&activity), Some((CLIENT_READ, WRITE)));
        activity.sent();
        drop(request);
        assert_eq!(waits(&activity), None);
        drop(other);
        assert_eq!(waits(&activity), Some((NEXT_REQUEST, IDLE)));
    }
}
