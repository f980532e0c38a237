//! The executions that are not over, by name; and how many of them there may be.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use sandbox::ByteSize;
use sandbox_api::{Code, Problem};
use sandbox_store::Idempotency;

use super::live::{Live, Outcome, lock};
use super::workspace;

/// What was accepted and is not over. Finished executions are read from the store: one is removed here
/// only after it is complete there, so whoever does not find it here finds it there.
#[derive(Default)]
pub(super) struct Hub {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: HashMap<String, Arc<Live>>,
    /// How many of each client's are not over. Whoever comes without a key is one client: an address on
    /// loopback can be chosen at will.
    by_owner: HashMap<Option<String>, Held>,
    /// Those that are in these numbers.
    counted: HashSet<String>,
    /// Those that were accepted and not begun, and the bytes that each keeps in memory until then.
    waiting: HashMap<String, u64>,
    waiting_bytes: u64,
    is_closed: bool,
}

/// What the executions of one client take.
#[derive(Default)]
struct Held {
    count: usize,
    waiting_bytes: u64,
}

/// How many executions there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) waiting: usize,
    /// Bytes of requests that wait.
    pub(super) waiting_bytes: u64,
    /// Bytes of requests of one key that wait.
    pub(super) waiting_bytes_per_key: u64,
    pub(super) per_key: usize,
    /// Whether that is the bound of clients without keys too.
    pub(super) of_local: bool,
}

impl Hub {
    /// Adds a new execution if there is room for it.
    pub(super) fn add(&self, live: &Arc<Live>, bounds: Bounds) -> Result<(), Problem> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(Problem::new(Code::Unavailable, "the server is stopping"));
        }
        let is_bounded = live.owner.is_some() || bounds.of_local;
        let bytes = live.waiting_bytes();
        let held = state.by_owner.get(&live.owner);
        let (count, own_bytes) = held.map_or((0, 0), |held| (held.count, held.waiting_bytes));
        if is_bounded && count >= bounds.per_key {
            let reason = format!("this client has {} executions that are not over", bounds.per_key);
            return Err(Problem::new(Code::QuotaExceeded, reason));
        }
        if is_bounded && own_bytes.saturating_add(bytes) > bounds.waiting_bytes_per_key {
            let most = ByteSize::bytes(bounds.waiting_bytes_per_key);
            let reason = format!("requests of this client that wait may hold {most} together");
            return Err(Problem::new(Code::QuotaExceeded, reason));
        }
        if state.waiting_bytes.saturating_add(bytes) > bounds.waiting_bytes {
            let most = ByteSize::bytes(bounds.waiting_bytes);
            let reason = format!("requests that wait may hold {most} together");
            return Err(Problem::new(Code::QueueFull, reason));
        }
        if state.waiting.len() >= bounds.waiting {
            let reason = format!("{} executions wait already", bounds.waiting);
            return Err(Problem::new(Code::QueueFull, reason));
        }
        if let Some(other) = state.writer_before(live) {
            let name = live.writes_to.as_deref().unwrap_or_default();
            return Err(workspace::in_use(name, &other.id));
        }
        state.insert(live);
        Ok(())
    }

    /// Adds one that was accepted before the server was started.
    pub(super) fn add_again(&self, live: &Arc<Live>) {
        lock(&self.state).insert(live);
    }

    /// One of them waits no more.
    pub(super) fn begun(&self, id: &str) {
        let mut state = lock(&self.state);
        if let Some(live) = state.live.get(id).cloned() {
            state.stop_waiting(&live);
        }
    }

    /// One is over, so that its owner may have another. It is still found here.
    pub(super) fn make_room(&self, live: &Live) {
        lock(&self.state).make_room(live);
    }

    /// Forgets one that is over.
    pub(super) fn remove(&self, id: &str) {
        let mut state = lock(&self.state);
        if let Some(live) = state.live.remove(id) {
            state.make_room(&live);
        }
    }

    /// Bytes of the requests that wait.
    pub(super) fn waiting_bytes(&self) -> u64 {
        lock(&self.state).waiting_bytes
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.state).live.get(id).cloned()
    }

    /// The execution that a key began under this name, if it is not over.
    pub(super) fn same(&self, owner: Option<&str>, asked: &Idempotency) -> Option<Arc<Live>> {
        let is_same = |live: &&Arc<Live>| {
            let name = live.idempotency.as_ref().map(|idempotency| &idempotency.key);
            live.owner.as_deref() == owner && name == Some(&asked.key)
        };
        lock(&self.state).live.values().find(is_same).cloned()
    }

    /// Takes no more.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
    }

    /// Whether it takes no more.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    /// Those there are.
    pub(super) fn all(&self) -> Vec<Arc<Live>> {
        lock(&self.state).live.values().cloned().collect()
    }

    /// Lets go of all that still wait, in favour of the next start.
    pub(super) fn put_all_back(&self) {
        for live in self.all() {
            if live.outcome().is_none() {
                live.end(Outcome::PutBack);
            }
            self.remove(&live.id);
        }
    }
}

impl State {
    /// Another execution of this owner's that may replace the same workspace. One that has told its end
    /// has let go of it.
    fn writer_before(&self, live: &Live) -> Option<&Arc<Live>> {
        live.writes_to.as_ref()?;
        self.live.values().find(|other| {
            other.writes_to == live.writes_to
                && other.owner == live.owner
                && other.outcome().is_none()
        })
    }

    fn make_room(&mut self, live: &Live) {
        self.stop_waiting(live);
        // Once for each, however often it is said.
        if !self.counted.remove(&live.id) {
            return;
        }
        if let Some(held) = self.by_owner.get_mut(&live.owner) {
            held.count -= 1;
            if held.count == 0 {
                self.by_owner.remove(&live.owner);
            }
        }
    }

    fn stop_waiting(&mut self, live: &Live) {
        let Some(bytes) = self.waiting.remove(&live.id) else { return };
        self.waiting_bytes -= bytes;
        if let Some(held) = self.by_owner.get_mut(&live.owner) {
            held.waiting_bytes -= bytes;
        }
    }

    fn insert(&mut self, live: &Arc<Live>) {
        self.counted.insert(live.id.clone());
        let bytes = live.waiting_bytes();
        let held = self.by_owner.entry(live.owner.clone()).or_default();
        held.count += 1;
        held.waiting_bytes += bytes;
        self.waiting.insert(live.id.clone(), bytes);
        self.waiting_bytes += bytes;
        self.live.insert(live.id.clone(), Arc::clone(live));
    }
}
