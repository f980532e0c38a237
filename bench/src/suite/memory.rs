//! What a sandbox costs that waits for a request: how much less memory the host has with many of them.

use std::time::Duration;

use anyhow::ensure;
use sandbox::Backend as _;
use sandbox_backends::native::Spare;
use sandbox_tests::wait::wait_for;

use super::warm;
use crate::cases::start_backend;
use crate::measure::median_number;
use crate::usage::{HostMemory, below_kib};

/// A pool that is not full by then never is.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);
/// In which the kernel gives back what ended processes had, and counts what new ones have.
const SETTLING: Duration = Duration::from_millis(1500);

/// KiB that each of them takes.
pub(crate) struct Memory {
    pub(crate) kind: &'static str,
    pub(crate) sandboxes: usize,
    /// By what is neither free nor given up when needed, in each repetition.
    pub(crate) used: Vec<f64>,
    /// By what the kernel says a new program could have.
    pub(crate) unavailable: Vec<f64>,
    /// By what their processes have, without what the kernel has for them.
    pub(crate) processes: Vec<f64>,
}

pub(crate) const PREPARED: &str = "prepared";
pub(crate) const WARM_PYTHON: &str = "warm Python";

/// Repetitions that differ by more, in MiB, tell of others on the host.
const MAX_SPREAD: f64 = 0.5;

impl Memory {
    pub(crate) fn used_mib(&self) -> f64 {
        median_mib(&self.used)
    }

    pub(crate) fn unavailable_mib(&self) -> f64 {
        median_mib(&self.unavailable)
    }

    pub(crate) fn processes_mib(&self) -> f64 {
        median_mib(&self.processes)
    }

    /// What is judged: others who end meanwhile may hide what the host lost, but not what the processes have.
    pub(crate) fn judged_mib(&self) -> f64 {
        self.used_mib().max(self.processes_mib())
    }

    /// Whether other processes on the host allocated or freed memory meanwhile.
    pub(crate) fn is_noisy(&self) -> bool {
        let bounds = |pick: fn(f64, f64) -> f64| self.used.iter().copied().reduce(pick);
        let spread =
            bounds(f64::max).zip(bounds(f64::min)).map_or(0.0, |(most, least)| most - least);
        spread / 1024.0 > MAX_SPREAD || self.used_mib() < self.processes_mib()
    }
}

/// Of several repetitions.
fn median_mib(kib: &[f64]) -> f64 {
    median_number(kib.to_vec()) / 1024.0
}

/// Of prepared ones, and of warm ones.
pub(super) fn measure(
    sandboxes: usize,
    repetitions: usize,
) -> (anyhow::Result<Memory>, anyhow::Result<Memory>) {
    let prepared = || -> anyhow::Result<Count> {
        let backend = start_backend(Spare::Keep(sandboxes))?;
        Ok(Box::new(move || backend.pool().map_or(0, |pool| pool.ready)))
    };
    let warm = || -> anyhow::Result<Count> {
        let pythons = warm::keep_warm_pythons(sandboxes)?;
        Ok(Box::new(move || pythons.ready()))
    };
    (
        of_kind(PREPARED, sandboxes, repetitions, prepared),
        of_kind(WARM_PYTHON, sandboxes, repetitions, warm),
    )
}

/// Keeps sandboxes ready while it lives, and says how many are.
type Count = Box<dyn Fn() -> usize>;

fn of_kind(
    kind: &'static str,
    sandboxes: usize,
    repetitions: usize,
    start: impl Fn() -> anyhow::Result<Count>,
) -> anyhow::Result<Memory> {
    let mut memory = Memory {
        kind,
        sandboxes,
        used: Vec::new(),
        unavailable: Vec::new(),
        processes: Vec::new(),
    };
    let each = f64::from(u32::try_from(sandboxes)?);
    // The first one reads files that stay in memory after.
    for repetition in 0..=repetitions {
        std::thread::sleep(SETTLING);
        let before = HostMemory::now()?;
        let count = start()?;
        let full = wait_for(SETTLE_TIMEOUT, || (count() >= sandboxes).then_some(()));
        ensure!(full.is_some(), "only {} of {sandboxes} sandboxes are ready ({kind})", count());
        std::thread::sleep(SETTLING);
        let (after, below) = (HostMemory::now()?, below_kib());
        if repetition > 0 {
            memory.used.push((after.used - before.used) / each);
            memory.unavailable.push((before.available - after.available) / each);
            memory.processes.push(f64::from(u32::try_from(below)?) / each);
        }
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_give_back_hides_nothing() {
        let (used, processes) = (vec![-900.0, 300.0, 900.0], vec![400.0; 3]);
        let memory =
            Memory { kind: PREPARED, sandboxes: 1, used, unavailable: Vec::new(), processes };
        assert!((memory.judged_mib() - 400.0 / 1024.0).abs() < 1e-9);
        assert!(memory.is_noisy());
    }
}
