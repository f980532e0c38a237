use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Version;
use tokio::time::{Instant, sleep_until};

use crate::serve::limits::Limits;

/// What a connection is doing, and until when it has to do something else.
pub(super) struct Activity {
    limits: Limits,
    now: Mutex<Now>,
    is_abandoned: AtomicBool,
}

#[derive(Debug)]
struct Now {
    /// Requests whose answers are not all taken yet.
    requests: usize,
    /// Those of them whose answer has a piece ready that nobody fetches.
    unfetched: usize,
    /// When a request came or a piece of an answer was fetched.
    moved: Instant,
    /// Since when the socket takes no more bytes, if it does not.
    blocked: Option<Instant>,
    /// Since when there is part of a head, or of a handshake, and no request yet.
    beginning: Option<Instant>,
    /// Bytes of HTTP/2 between requests do not mean that one begins.
    is_http2: bool,
}

/// Something that the client has to do in time.
struct Waiting {
    since: Instant,
    limit: Duration,
    what: &'static str,
}

const A_HEAD: &str = "the head of a request";
const ANOTHER_REQUEST: &str = "another request";
const THE_CLIENT_TO_READ: &str = "the client to read";

/// A request from its head to the last byte of its answer.
pub(super) struct Underway {
    activity: Arc<Activity>,
    is_unfetched: bool,
}

impl Activity {
    /// Of a connection that has just been made, and whose first request should follow at once.
    pub(super) fn new(limits: &Limits) -> Self {
        let moved = Instant::now();
        let now = Now {
            requests: 0,
            unfetched: 0,
            moved,
            blocked: None,
            beginning: Some(moved),
            is_http2: false,
        };
        Self { limits: *limits, now: Mutex::new(now), is_abandoned: AtomicBool::new(false) }
    }

    /// Bytes came.
    pub(super) fn heard(&self) {
        let mut now = self.now();
        if now.requests == 0 && now.beginning.is_none() && !now.is_http2 {
            now.beginning = Some(Instant::now());
        }
    }

    /// The socket took bytes, which counts as movement: an answer is under way for longer than we have it.
    pub(super) fn wrote(&self) {
        let mut now = self.now();
        now.blocked = None;
        now.moved = Instant::now();
    }

    /// The socket takes no bytes.
    pub(super) fn blocked(&self) {
        self.now().blocked.get_or_insert_with(Instant::now);
    }

    /// A request came.
    pub(super) fn begin(self: Arc<Self>, version: Version) -> Underway {
        let mut now = self.now();
        now.requests += 1;
        now.moved = Instant::now();
        now.beginning = None;
        now.is_http2 = version == Version::HTTP_2;
        drop(now);
        Underway { activity: self, is_unfetched: false }
    }

    /// The client had its time: it is not waited for when the connection is closed.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::SeqCst);
    }

    /// Whether the client had its time.
    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::SeqCst)
    }

    /// Waits until the connection should be closed, and says what it waited for in vain.
    pub(super) async fn overdue(&self) -> &'static str {
        let Limits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        // A wait that begins during this nap ends after it, so nothing is overslept.
        let nap = header_timeout.min(idle_timeout).min(write_timeout);
        loop {
            let now = Instant::now();
            let waiting = self.waiting();
            let deadline = waiting.as_ref().map(|waiting| waiting.since + waiting.limit);
            match waiting {
                Some(waiting) if deadline <= Some(now) => return waiting.what,
                _ => sleep_until(deadline.unwrap_or(now + nap).min(now + nap)).await,
            }
        }
    }

    /// What the client has to do next, if it is the client's turn.
    fn waiting(&self) -> Option<Waiting> {
        let Limits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        let (since, limit, what) = match *self.now() {
            Now { blocked: Some(since), .. } => (since, write_timeout, THE_CLIENT_TO_READ),
            Now { requests: 0, beginning: Some(since), .. } => (since, header_timeout, A_HEAD),
            Now { requests: 0, moved, .. } => (moved, idle_timeout, ANOTHER_REQUEST),
            // With HTTP/2 it is not the socket that is full, but the client's window. As long as any
            // other request is being worked on, it goes on: clients of one proxy share a connection.
            Now { requests, unfetched, moved, .. } if requests == unfetched => {
                (moved, write_timeout, THE_CLIENT_TO_READ)
            }
            Now { .. } => return None,
        };
        Some(Waiting { since, limit, what })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Underway {
    /// Somebody came for the next piece of the answer, and got it or has to wait for it.
    pub(super) fn fetched(&mut self, is_there: bool) {
        let mut now = self.activity.now();
        now.moved = Instant::now();
        match (self.is_unfetched, is_there) {
            (false, true) => now.unfetched += 1,
            (true, false) => now.unfetched -= 1,
            _ => {}
        }
        self.is_unfetched = is_there;
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.fetched(false);
        self.activity.now().requests -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Duration = Duration::from_secs(1);
    const IDLE: Duration = Duration::from_secs(10);
    const WRITE: Duration = Duration::from_secs(3);

    fn activity() -> Arc<Activity> {
        let limits = Limits {
            connections: 1,
            header_timeout: HEADER,
            idle_timeout: IDLE,
            write_timeout: WRITE,
        };
        Arc::new(Activity::new(&limits))
    }

    /// What is waited for, and for how long.
    fn waits(activity: &Activity) -> Option<(&'static str, Duration)> {
        activity.waiting().map(|waiting| (waiting.what, waiting.limit))
    }

    #[test]
    fn a_new_connection_has_the_time_of_a_head() {
        let activity = activity();
        assert_eq!(waits(&activity), Some((A_HEAD, HEADER)));
        let since = activity.waiting().map(|waiting| waiting.since);
        activity.heard();
        activity.wrote();
        let later = activity.waiting().map(|waiting| waiting.since);
        assert_eq!(since, later, "bytes alone do not make it longer");
    }

    #[test]
    fn after_an_answer_the_next_request_may_take_its_time_but_not_its_head() {
        let activity = activity();
        drop(Arc::clone(&activity).begin(Version::HTTP_11));
        assert_eq!(waits(&activity), Some((ANOTHER_REQUEST, IDLE)));
        activity.heard();
        assert_eq!(waits(&activity), Some((A_HEAD, HEADER)));
    }

    #[test]
    fn what_http2_says_between_requests_is_no_request() {
        let activity = activity();
        drop(Arc::clone(&activity).begin(Version::HTTP_2));
        activity.heard();
        assert_eq!(waits(&activity), Some((ANOTHER_REQUEST, IDLE)));
    }

    #[test]
    fn nobody_is_closed_for_waiting_for_us() {
        let activity = activity();
        let mut request = Arc::clone(&activity).begin(Version::HTTP_11);
        activity.heard();
        assert_eq!(waits(&activity), None, "no answer yet");
        request.fetched(true);
        request.fetched(false);
        assert_eq!(waits(&activity), None, "a part of it, and then silence");
    }

    #[test]
    fn a_client_that_takes_nothing_is_closed() {
        let activity = activity();
        let mut request = Arc::clone(&activity).begin(Version::HTTP_2);
        request.fetched(true);
        request.fetched(true);
        assert_eq!(waits(&activity), Some((THE_CLIENT_TO_READ, WRITE)));
        let other = Arc::clone(&activity).begin(Version::HTTP_2);
        assert_eq!(waits(&activity), None, "another request is being worked on");
        activity.blocked();
        assert_eq!(waits(&activity), Some((THE_CLIENT_TO_READ, WRITE)));
        activity.wrote();
        drop(request);
        assert_eq!(waits(&activity), None);
        drop(other);
        assert_eq!(waits(&activity), Some((ANOTHER_REQUEST, IDLE)));
    }
}
