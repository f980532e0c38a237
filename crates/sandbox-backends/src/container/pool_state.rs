//! Which containers are ready, and which to create next.

use std::time::{Duration, Instant};

use super::ContainerSpec;

/// Maximum number of specifications with ready containers. Others are created on demand.
const MAX_KINDS: usize = 4;
/// A specification that was not requested for this long has no ready containers.
const LIFETIME: Duration = Duration::from_mins(10);

/// Containers by specification, most recently requested first.
pub(super) struct PoolState<C> {
    kinds: Vec<Kind<C>>,
    /// How many to keep ready of each.
    spare: usize,
}

struct Kind<C> {
    spec: ContainerSpec,
    /// Whether it was requested more than once.
    is_in_demand: bool,
    last_request: Instant,
    waiting: Vec<C>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task<C> {
    /// Create a container with this specification.
    Make(ContainerSpec),
    /// Remove these containers.
    GiveUp(Vec<C>),
    /// Wait, at most this long.
    Wait(Option<Duration>),
}

impl<C> PoolState<C> {
    pub(super) fn new(spare: usize) -> Self {
        Self { kinds: Vec::new(), spare }
    }

    /// Takes a waiting container, if there is one. Also returns containers to remove: those that
    /// have ended, or whose specification is no longer in demand.
    pub(super) fn take(
        &mut self,
        spec: &ContainerSpec,
        now: Instant,
        mut is_waiting: impl FnMut(&mut C) -> bool,
    ) -> (Option<C>, Vec<C>) {
        if self.spare == 0 {
            return (None, Vec::new());
        }
        let place = self.kinds.iter().position(|kind| kind.spec == *spec);
        let mut kind = match place {
            Some(place) => Kind { is_in_demand: true, ..self.kinds.remove(place) },
            None => Kind {
                spec: spec.clone(),
                is_in_demand: false,
                last_request: now,
                waiting: Vec::new(),
            },
        };
        kind.last_request = now;
        let mut given_up = Vec::new();
        let mut taken = None;
        while taken.is_none() && !kind.waiting.is_empty() {
            // The one that has waited longest.
            let mut oldest = kind.waiting.remove(0);
            if is_waiting(&mut oldest) {
                taken = Some(oldest);
            } else {
                given_up.push(oldest);
            }
        }
        self.kinds.insert(0, kind);
        for kind in self.kinds.split_off(self.kinds.len().min(MAX_KINDS)) {
            given_up.extend(kind.waiting);
        }
        (taken, given_up)
    }

    pub(super) fn next_task(&mut self, now: Instant) -> Task<C> {
        let is_old = |kind: &Kind<C>| now.saturating_duration_since(kind.last_request) >= LIFETIME;
        // The least recently requested is last.
        if let Some(kind) = self.kinds.pop_if(|kind| is_old(kind)) {
            return Task::GiveUp(kind.waiting);
        }
        let mut lacking =
            self.kinds.iter().filter(|kind| kind.is_in_demand && kind.waiting.len() < self.spare);
        if let Some(kind) = lacking.next() {
            return Task::Make(kind.spec.clone());
        }
        let last = self.kinds.last();
        Task::Wait(last.map(|kind| (kind.last_request + LIFETIME).saturating_duration_since(now)))
    }

    /// Adds a container, or returns it if it is no longer needed.
    pub(super) fn put(&mut self, spec: &ContainerSpec, container: C) -> Option<C> {
        match self.kinds.iter_mut().find(|kind| kind.spec == *spec) {
            Some(kind) if kind.waiting.len() < self.spare => {
                kind.waiting.push(container);
                None
            }
            _ => Some(container),
        }
    }

    /// Records a failure: no more are created before two further requests.
    pub(super) fn forget(&mut self, spec: &ContainerSpec) {
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.spec == *spec) {
            kind.is_in_demand = false;
        }
    }

    pub(super) fn empty(&mut self) -> Vec<C> {
        self.kinds.drain(..).flat_map(|kind| kind.waiting).collect()
    }

    pub(super) fn ready(&self) -> usize {
        self.kinds.iter().map(|kind| kind.waiting.len()).sum()
    }

    pub(super) fn wanted(&self) -> usize {
        self.kinds.iter().filter(|kind| kind.is_in_demand).count() * self.spare
    }
}

#[cfg(test)]
mod tests {
    use sandbox_core::NetworkPolicy;

    use super::*;

    fn spec(memory_bytes: u64) -> ContainerSpec {
        ContainerSpec {
            memory_bytes,
            pids: 1,
            cpu_millis: 1000,
            disk_bytes: 1,
            inodes: 1,
            network: NetworkPolicy::None,
            trees: Vec::new(),
            places: Vec::new(),
            agent_is_root: false,
            agent_processes: 1,
        }
    }

    fn ask(pool: &mut PoolState<u32>, kind: u64, now: Instant) -> Option<u32> {
        pool.take(&spec(kind), now, |container| *container != 13).0
    }

    #[test]
    fn a_repeated_specification_is_created_ahead_and_used_once() {
        let (mut pool, now) = (PoolState::new(2), Instant::now());
        assert_eq!(ask(&mut pool, 1, now), None);
        assert!(matches!(pool.next_task(now), Task::Wait(Some(_))));
        assert_eq!(ask(&mut pool, 1, now), None);
        for container in [7, 8] {
            assert_eq!(pool.next_task(now), Task::Make(spec(1)));
            assert_eq!(pool.put(&spec(1), container), None);
        }
        assert!(matches!(pool.next_task(now), Task::Wait(Some(_))));
        assert_eq!(pool.put(&spec(1), 9), Some(9));
        assert_eq!((pool.ready(), pool.wanted()), (2, 2));
        assert_eq!(ask(&mut pool, 2, now), None);
        assert_eq!([ask(&mut pool, 1, now), ask(&mut pool, 1, now)], [Some(7), Some(8)]);
        assert_eq!(ask(&mut pool, 1, now), None);
    }

    #[test]
    fn an_ended_container_is_not_taken() {
        let (mut pool, now) = (PoolState::new(2), Instant::now());
        ask(&mut pool, 1, now);
        pool.put(&spec(1), 13);
        pool.put(&spec(1), 14);
        let (taken, given_up) = pool.take(&spec(1), now, |container| *container != 13);
        assert_eq!((taken, given_up), (Some(14), vec![13]));
    }

    #[test]
    fn unused_containers_are_removed() {
        let (mut pool, now) = (PoolState::new(1), Instant::now());
        ask(&mut pool, 1, now);
        ask(&mut pool, 1, now);
        pool.put(&spec(1), 7);
        let others = 2..=MAX_KINDS as u64 + 1;
        let given_up: Vec<u32> =
            others.flat_map(|kind| pool.take(&spec(kind), now, |_| true).1).collect();
        assert_eq!(given_up, [7]);
        ask(&mut pool, 2, now);
        pool.put(&spec(2), 8);
        ask(&mut pool, 3, now + LIFETIME);
        let mut left = Vec::new();
        while let Task::GiveUp(containers) = pool.next_task(now + LIFETIME) {
            left.extend(containers);
        }
        assert_eq!(left, [8]);
        assert_eq!(pool.kinds.len(), 1);
    }

    #[test]
    fn a_failed_creation_is_not_retried_forever() {
        let (mut pool, now) = (PoolState::<u32>::new(1), Instant::now());
        ask(&mut pool, 1, now);
        ask(&mut pool, 1, now);
        pool.forget(&spec(1));
        assert!(matches!(pool.next_task(now), Task::Wait(Some(_))));
        ask(&mut pool, 1, now);
        assert_eq!(pool.next_task(now), Task::Make(spec(1)));
    }

    #[test]
    fn a_pool_without_spares_keeps_no_state() {
        let (mut pool, now) = (PoolState::<u32>::new(0), Instant::now());
        ask(&mut pool, 1, now);
        ask(&mut pool, 1, now);
        assert_eq!(pool.next_task(now), Task::Wait(None));
    }
}
