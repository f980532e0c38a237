//! How much is measured.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{latency, parallel};
use crate::usize_in;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Latency,
    Concurrency,
    Throughput,
    Memory,
    Growth,
    Queue,
}

impl Part {
    pub(crate) const ALL: [Self; 6] = [
        Self::Latency,
        Self::Concurrency,
        Self::Throughput,
        Self::Memory,
        Self::Growth,
        Self::Queue,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Concurrency => "concurrency",
            Self::Throughput => "throughput",
            Self::Memory => "memory",
            Self::Growth => "growth",
            Self::Queue => "queue",
        }
    }
}

/// The sizes of all parts; each part looks at its own.
#[derive(Args)]
pub(crate) struct Options {
    /// About a minute for all of it: to see that it works, not to quote figures. Other sizes are ignored.
    #[arg(long)]
    quick: bool,
    /// Latency: rounds back to back; slow peers have a turn in a quarter of them.
    #[arg(long, default_value_t = 80, value_parser = usize_in(2..=100_000))]
    turns: usize,
    /// Latency: rounds in which each run comes after 100 ms of idleness.
    #[arg(long, default_value_t = 30, value_parser = usize_in(2..=100_000))]
    spaced: usize,
    /// Latency: without other sandboxes.
    #[arg(long)]
    pub(super) without_peers: bool,
    /// Concurrency: numbers of workers.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 8, 32])]
    pub(super) concurrency: Vec<usize>,
    /// Throughput: numbers of workers.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 8])]
    pub(super) workers: Vec<usize>,
    /// Concurrency and throughput: rounds of bare and of ours for each number of workers.
    #[arg(long, default_value_t = 4, value_parser = usize_in(1..=1000))]
    repeats: usize,
    /// Concurrency and throughput: how long a round is, in milliseconds.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    round_ms: u64,
    /// Memory: how many sandboxes are kept ready.
    #[arg(long, default_value_t = 100, value_parser = usize_in(1..=10_000))]
    sandboxes: usize,
    /// Growth: numbers of programs that wait meanwhile.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 500, 1000])]
    in_flight: Vec<usize>,
    /// Queue: numbers of executions that wait for their turn.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 10_000])]
    queued: Vec<usize>,
    /// Queue: the sandboxd to start; the one beside this program if not given.
    #[arg(long, value_name = "PROGRAM")]
    pub(super) server: Option<PathBuf>,
    /// End with code 1 unless every promise was measured and holds.
    #[arg(long)]
    pub(super) judge: bool,
    /// Where the results and the plots go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    pub(super) results: PathBuf,
}

impl Options {
    pub(super) fn rounds(&self) -> latency::Rounds {
        if self.quick {
            return latency::Rounds { turns: 4, spaced: 2 };
        }
        latency::Rounds { turns: self.turns, spaced: self.spaced }
    }

    pub(super) fn parallel_rounds(&self) -> parallel::Rounds {
        if self.quick {
            return parallel::Rounds { count: 1, length: Duration::from_millis(200) };
        }
        let length = Duration::from_millis(self.round_ms);
        parallel::Rounds { count: self.repeats.div_ceil(2), length }
    }

    /// Fewer numbers of workers, and a promise about one of them: more rounds.
    pub(super) fn throughput_rounds(&self) -> parallel::Rounds {
        let rounds = self.parallel_rounds();
        if self.quick { rounds } else { parallel::Rounds { count: self.repeats, ..rounds } }
    }

    pub(super) fn sandboxes(&self) -> usize {
        if self.quick { 20 } else { self.sandboxes }
    }

    /// How often memory is looked at.
    pub(super) fn repetitions(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    pub(super) fn in_flight(&self) -> Vec<usize> {
        if self.quick { vec![1, 10, 100] } else { self.in_flight.clone() }
    }

    /// Runs of the small program beside those in flight.
    pub(super) fn growth_runs(&self) -> usize {
        if self.quick { 10 } else { 100 }
    }

    pub(super) fn queued(&self) -> Vec<usize> {
        if self.quick { vec![1, 100, 1000] } else { self.queued.clone() }
    }
}
