//! What a pool has ready, and what it knows of the demand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox_core::StagePlan;

use super::retire::Retirement;
use super::shelf::Shelf;
use super::slots::ReadySlot;
use super::warm::{Shape, Wanted};

/// Making a slot takes CPU time that a program which has just been started could use. So it waits this
/// long, or until that program has ended, if there are others left.
pub(crate) const REFILL_PAUSE: Duration = Duration::from_millis(20);
/// What takes long to start, a virtual machine, must not fall into the middle of an execution of a tenth of
/// a second: it waits for a part of the time that it takes.
const PART_OF_A_START: u32 = 5;
const MAX_BACKOFF: Duration = Duration::from_millis(100);
/// More shapes than a server with a dozen languages and a few sets of limits has.
const MAX_POOLS: usize = 32;
/// Of these so many may be for compiled programs, each of which is one: a judge runs one many times, and
/// then another.
const MAX_PROGRAMS: usize = 4;

/// All of it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) ready: VecDeque<ReadySlot>,
    pub(crate) shelves: Vec<Shelf>,
    pub(crate) supply: Supply,
    /// Slots in use.
    pub(crate) leased: usize,
    /// When the last one was taken.
    pub(crate) last_claim: Option<Instant>,
    pub(crate) closing: bool,
}

/// What the preparing thread is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Supply {
    /// Nothing.
    #[default]
    Idle,
    /// A slot.
    Underway,
    /// A slot that someone waits for.
    Awaited,
    /// The last one failed: it tries no more until someone asks, who then hears why.
    Stalled,
}

impl State {
    /// How long to leave the CPU to what was just started, with so many slots left, each of which takes so long to
    /// make.
    pub(crate) fn pause(
        &self,
        left: usize,
        wanted: usize,
        start_time: Duration,
    ) -> Option<Duration> {
        if self.leased == 0 || left <= wanted / 4 {
            return None;
        }
        let passed = self.last_claim?.elapsed();
        let pause = (start_time / PART_OF_A_START).clamp(REFILL_PAUSE, MAX_BACKOFF);
        pause.checked_sub(passed).filter(|left| !left.is_zero())
    }

    pub(crate) fn shelf_for(&mut self, plan: &StagePlan, wanted: &Wanted<'_>) -> &mut Shelf {
        let place = self.shelves.iter().position(|stock| stock.shape.fits(plan, wanted));
        let place = place.unwrap_or_else(|| {
            self.shelves.push(Shelf::new(Shape::of(plan, wanted)));
            self.shelves.len() - 1
        });
        &mut self.shelves[place]
    }

    /// Memory that waiting runtimes have.
    pub(crate) fn warm_memory(&self) -> u64 {
        let waiting = self.shelves.iter().flat_map(|stock| &stock.ready);
        waiting.map(|ready| ready.before.memory_current).sum()
    }

    /// What is too much: of shelves that are not used, and of more shelves than there may be.
    pub(crate) fn shrink(&mut self) -> Vec<ReadySlot> {
        let mut spare: Vec<ReadySlot> = self.shelves.iter_mut().flat_map(Shelf::shrink).collect();
        self.shelves.retain(|stock| !stock.is_spent());
        self.keep_at_most(MAX_PROGRAMS, |shelf| shelf.shape.runtime().is_none(), &mut spare);
        self.keep_at_most(MAX_POOLS, |_| true, &mut spare);
        spare
    }

    /// Removes shelves of a kind that are too many, those first that were not used for the longest time.
    fn keep_at_most(
        &mut self,
        most: usize,
        is_one: impl Fn(&Shelf) -> bool,
        spare: &mut Vec<ReadySlot>,
    ) {
        while self.shelves.iter().filter(|shelf| is_one(shelf)).count() > most {
            let all = self.shelves.iter().enumerate();
            let unused = all.filter(|(_, shelf)| is_one(shelf) && shelf.underway == 0);
            let oldest = unused.min_by_key(|(_, shelf)| shelf.last_use);
            let Some((place, _)) = oldest else { break };
            spare.extend(self.shelves.swap_remove(place).ready);
        }
    }

    /// A runtime that was started, or the reason why it was not.
    pub(crate) fn put(
        &mut self,
        shape: &Arc<Shape>,
        started: Result<ReadySlot, String>,
        start_time: Duration,
        retirement: &Retirement,
    ) {
        let stock = self.shelves.iter_mut().find(|stock| Arc::ptr_eq(&stock.shape, shape));
        match (stock, started) {
            (Some(stock), Ok(ready)) => {
                stock.underway -= 1;
                stock.start_time = start_time;
                stock.failure = None;
                stock.ready.push_back(ready);
            }
            (Some(stock), Err(reason)) => {
                stock.underway -= 1;
                stock.failure = Some((reason, Instant::now()));
            }
            (None, Ok(ready)) => retirement.discard(ready.slot),
            (None, Err(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::warm::Content;
    use super::*;

    fn programs(state: &State) -> Vec<String> {
        let key = |shelf: &Shelf| match &shelf.shape.content {
            Content::Artefacts(artefacts) => artefacts.key.clone(),
            Content::Runtime(_) => None,
        };
        state.shelves.iter().filter_map(key).collect()
    }

    /// Programs that were used one after another.
    fn used(count: usize) -> State {
        let mut state = State::default();
        let start = Instant::now();
        for number in 0..count {
            let mut shelf = Shelf::new(Shape::of_program(&number.to_string()));
            shelf.last_use = start + Duration::from_nanos(number as u64);
            state.shelves.push(shelf);
        }
        state
    }

    #[test]
    fn of_too_many_programs_those_used_last_are_kept() {
        let mut state = used(MAX_PROGRAMS + 2);
        state.shrink();
        let mut left = programs(&state);
        left.sort();
        assert_eq!(left, ["2", "3", "4", "5"]);
    }

    #[test]
    fn a_program_that_is_being_loaded_is_kept() {
        let mut state = used(MAX_PROGRAMS + 1);
        state.shelves[0].underway = 1;
        state.shrink();
        let left = programs(&state);
        assert_eq!(left.len(), MAX_PROGRAMS);
        assert!(left.contains(&"0".to_owned()) && !left.contains(&"1".to_owned()), "{left:?}");
    }

    #[test]
    fn as_many_programs_as_there_may_be_are_left_alone() {
        let mut state = used(MAX_PROGRAMS);
        state.shrink();
        assert_eq!(programs(&state).len(), MAX_PROGRAMS);
    }
}
