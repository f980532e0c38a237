//! Parallel runs: rounds of the bare program alternate with rounds of ours.

use std::time::Duration;

use super::contender::Way;
use super::subjects::Subject;
use crate::rounds::{self, Round, alternate};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Of each kind.
    pub(crate) count: usize,
    /// How long each is.
    pub(crate) length: Duration,
}

/// The measurements with one number of workers.
pub(crate) struct Parallel {
    pub(crate) subject: &'static str,
    pub(crate) workers: usize,
    pub(crate) bare: Vec<Round>,
    pub(crate) ours: Vec<Round>,
}

impl Parallel {
    /// Our throughput as a multiple of bare: the median over the rounds.
    pub(crate) fn gain(&self) -> f64 {
        rounds::gain(&self.ours, &self.bare)
    }
}

pub(super) fn measure(
    subject: &Subject<'_>,
    ours: Way,
    workers: usize,
    Rounds { count, length }: Rounds,
) -> anyhow::Result<Parallel> {
    let (bare, ours) = (subject.way(Way::Bare)?, subject.way(ours)?);
    let (ours, bare) = alternate(
        count,
        || ours.run_parallel(workers, length),
        || bare.run_parallel(workers, length),
    )?;
    Ok(Parallel { subject: subject.name, workers, bare, ours })
}
