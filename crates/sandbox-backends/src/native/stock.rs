//! What a pool has ready, and what it knows of the demand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox_core::{StagePlan, WarmPlan};

use super::retire::Retirement;
use super::shelf::Shelf;
use super::slots::ReadySlot;
use super::warm::Shape;

/// Making a slot takes CPU time that a program which has just been started could use. So it waits this
/// long, or until that program has ended, if there are others left.
const REFILL_PAUSE: Duration = Duration::from_millis(20);
/// More shapes than a server with a dozen languages and a few sets of limits has.
const MOST_SHELVES: usize = 32;

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
    /// How long to leave the CPU to what was just started, with so many slots left.
    pub(crate) fn pause(&self, left: usize, wanted: usize) -> Option<Duration> {
        if self.leased == 0 || left <= wanted / 4 {
            return None;
        }
        let passed = self.last_claim?.elapsed();
        REFILL_PAUSE.checked_sub(passed).filter(|left| !left.is_zero())
    }

    pub(crate) fn shelf_for(&mut self, plan: &StagePlan, warm: &Arc<WarmPlan>) -> &mut Shelf {
        let place = self.shelves.iter().position(|stock| stock.shape.fits(plan, warm));
        let place = place.unwrap_or_else(|| {
            self.shelves.push(Shelf::new(Shape::of(plan, warm)));
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
        while self.shelves.len() > MOST_SHELVES {
            let unused = self.shelves.iter().filter(|stock| stock.underway == 0);
            let Some(oldest) = unused.map(|stock| stock.last_use).min() else { break };
            let place = self.shelves.iter().position(|stock| stock.last_use == oldest);
            let Some(place) = place else { break };
            spare.extend(self.shelves.swap_remove(place).ready);
        }
        spare
    }

    /// A runtime that was started, or the reason why it was not.
    pub(crate) fn put(
        &mut self,
        shape: &Arc<Shape>,
        started: Result<ReadySlot, String>,
        retirement: &Retirement,
    ) {
        let stock = self.shelves.iter_mut().find(|stock| Arc::ptr_eq(&stock.shape, shape));
        match (stock, started) {
            (Some(stock), Ok(ready)) => {
                stock.underway -= 1;
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
