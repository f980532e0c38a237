//! Which containers wait, and of which more are to be made.

use std::time::{Duration, Instant};

use super::Purpose;

/// Kinds that are kept ready at a time. What is asked for less often is made when it is asked for.
const MAX_KINDS: usize = 4;
/// A kind that nobody asked for in this time is not kept ready any more.
const LIFETIME: Duration = Duration::from_mins(10);

/// Containers by what they are for, the kind that was asked for last in front.
pub(super) struct Stock<C> {
    kinds: Vec<Kind<C>>,
    /// How many of each are kept ready.
    spare: usize,
}

struct Kind<C> {
    purpose: Purpose,
    /// Once may be an accident; twice is a habit.
    is_habit: bool,
    asked: Instant,
    waiting: Vec<C>,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task<C> {
    /// Another one of this kind is to be made.
    Make(Purpose),
    /// These are not needed any more.
    GiveUp(Vec<C>),
    /// Nothing, for so long at most.
    Wait(Option<Duration>),
}

impl<C> Stock<C> {
    pub(super) fn new(spare: usize) -> Self {
        Self { kinds: Vec::new(), spare }
    }

    /// One that waits, if there is one, and those that are to be given up: they have ended, or are of a kind that has
    /// gone out of use.
    pub(super) fn take(
        &mut self,
        purpose: &Purpose,
        now: Instant,
        mut is_waiting: impl FnMut(&mut C) -> bool,
    ) -> (Option<C>, Vec<C>) {
        if self.spare == 0 {
            return (None, Vec::new());
        }
        let place = self.kinds.iter().position(|kind| kind.purpose == *purpose);
        let mut kind = match place {
            Some(place) => Kind { is_habit: true, ..self.kinds.remove(place) },
            None => {
                Kind { purpose: purpose.clone(), is_habit: false, asked: now, waiting: Vec::new() }
            }
        };
        kind.asked = now;
        let mut given_up = Vec::new();
        let mut taken = None;
        while taken.is_none() && !kind.waiting.is_empty() {
            // The one that has waited for longest.
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
        let is_old = |kind: &Kind<C>| now.saturating_duration_since(kind.asked) >= LIFETIME;
        // The one that was asked for longest ago is the last.
        if let Some(kind) = self.kinds.pop_if(|kind| is_old(kind)) {
            return Task::GiveUp(kind.waiting);
        }
        let mut lacking =
            self.kinds.iter().filter(|kind| kind.is_habit && kind.waiting.len() < self.spare);
        if let Some(kind) = lacking.next() {
            return Task::Make(kind.purpose.clone());
        }
        let last = self.kinds.last();
        Task::Wait(last.map(|kind| (kind.asked + LIFETIME).saturating_duration_since(now)))
    }

    /// Takes one in, or gives it back if it is not needed any more.
    pub(super) fn put(&mut self, purpose: &Purpose, container: C) -> Option<C> {
        match self.kinds.iter_mut().find(|kind| kind.purpose == *purpose) {
            Some(kind) if kind.waiting.len() < self.spare => {
                kind.waiting.push(container);
                None
            }
            _ => Some(container),
        }
    }

    /// One could not be made: no more are, before somebody has asked twice again.
    pub(super) fn forget(&mut self, purpose: &Purpose) {
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.purpose == *purpose) {
            kind.is_habit = false;
        }
    }

    pub(super) fn empty(&mut self) -> Vec<C> {
        self.kinds.drain(..).flat_map(|kind| kind.waiting).collect()
    }

    pub(super) fn ready(&self) -> usize {
        self.kinds.iter().map(|kind| kind.waiting.len()).sum()
    }

    pub(super) fn wanted(&self) -> usize {
        self.kinds.iter().filter(|kind| kind.is_habit).count() * self.spare
    }
}

#[cfg(test)]
mod tests {
    use sandbox_core::NetworkPolicy;

    use super::*;

    fn purpose(memory_bytes: u64) -> Purpose {
        Purpose {
            memory_bytes,
            pids: 1,
            cpu_millis: 1000,
            disk_bytes: 1,
            inodes: 1,
            network: NetworkPolicy::None,
            trees: Vec::new(),
            places: Vec::new(),
        }
    }

    fn ask(stock: &mut Stock<u32>, kind: u64, now: Instant) -> Option<u32> {
        stock.take(&purpose(kind), now, |container| *container != 13).0
    }

    #[test]
    fn what_is_asked_for_again_is_made_ahead_and_used_once() {
        let (mut stock, now) = (Stock::new(2), Instant::now());
        assert_eq!(ask(&mut stock, 1, now), None);
        assert!(matches!(stock.next_task(now), Task::Wait(Some(_))));
        assert_eq!(ask(&mut stock, 1, now), None);
        for container in [7, 8] {
            assert_eq!(stock.next_task(now), Task::Make(purpose(1)));
            assert_eq!(stock.put(&purpose(1), container), None);
        }
        assert!(matches!(stock.next_task(now), Task::Wait(Some(_))));
        assert_eq!(stock.put(&purpose(1), 9), Some(9));
        assert_eq!((stock.ready(), stock.wanted()), (2, 2));
        assert_eq!(ask(&mut stock, 2, now), None);
        assert_eq!([ask(&mut stock, 1, now), ask(&mut stock, 1, now)], [Some(7), Some(8)]);
        assert_eq!(ask(&mut stock, 1, now), None);
    }

    #[test]
    fn one_that_has_ended_is_not_given_out() {
        let (mut stock, now) = (Stock::new(2), Instant::now());
        ask(&mut stock, 1, now);
        stock.put(&purpose(1), 13);
        stock.put(&purpose(1), 14);
        let (taken, given_up) = stock.take(&purpose(1), now, |container| *container != 13);
        assert_eq!((taken, given_up), (Some(14), vec![13]));
    }

    #[test]
    fn what_goes_out_of_use_is_given_up() {
        let (mut stock, now) = (Stock::new(1), Instant::now());
        ask(&mut stock, 1, now);
        ask(&mut stock, 1, now);
        stock.put(&purpose(1), 7);
        let others = 2..=MAX_KINDS as u64 + 1;
        let given_up: Vec<u32> =
            others.flat_map(|kind| stock.take(&purpose(kind), now, |_| true).1).collect();
        assert_eq!(given_up, [7]);
        ask(&mut stock, 2, now);
        stock.put(&purpose(2), 8);
        ask(&mut stock, 3, now + LIFETIME);
        let mut left = Vec::new();
        while let Task::GiveUp(containers) = stock.next_task(now + LIFETIME) {
            left.extend(containers);
        }
        assert_eq!(left, [8]);
        assert_eq!(stock.kinds.len(), 1);
    }

    #[test]
    fn one_that_cannot_be_made_is_not_tried_for_ever() {
        let (mut stock, now) = (Stock::<u32>::new(1), Instant::now());
        ask(&mut stock, 1, now);
        ask(&mut stock, 1, now);
        stock.forget(&purpose(1));
        assert!(matches!(stock.next_task(now), Task::Wait(Some(_))));
        ask(&mut stock, 1, now);
        assert_eq!(stock.next_task(now), Task::Make(purpose(1)));
    }

    #[test]
    fn without_spare_ones_nothing_is_remembered() {
        let (mut stock, now) = (Stock::<u32>::new(0), Instant::now());
        ask(&mut stock, 1, now);
        ask(&mut stock, 1, now);
        assert_eq!(stock.next_task(now), Task::Wait(None));
    }
}
