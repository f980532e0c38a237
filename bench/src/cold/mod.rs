//! Cold start: a single-use sandbox against a bare process and bubblewrap. [`protections`] measures what each
//! protection costs, [`show`] renders the results.

mod protections;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sandbox_backends::native::{NativeOptions, Spare};
use sandbox_core::Protection;

use crate::cases::{Case, Payload, Way, start_backend};
use crate::host::HostFacts;
use crate::measure::{self, Pacing, measure};
use crate::{table, usize_in};
use protections::ProtectionCost;

/// A Python run takes about as long as this many of the small program.
const PYTHON_FACTOR: usize = 3;
const QUICK_ROUNDS: usize = 6;

#[derive(Args)]
pub(crate) struct Plan {
    /// Rounds with pauses; the other pacings run a multiple of it
    #[arg(long, default_value_t = 24, value_parser = usize_in(2..=10_000))]
    rounds: usize,
    /// Run only a few rounds: a smoke test, not for quoting figures
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Directory for cold.json and cold.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

/// All results.
struct Findings {
    host: HostFacts,
    comparisons: Vec<Comparison>,
    protections: Vec<ProtectionCost>,
    /// Protections that this host does not support.
    not_enforced: Vec<Protection>,
}

impl Findings {
    /// Where ours did not cost less than bubblewrap.
    fn dearer(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|comparison| !is_ours_cheaper(comparison))
    }
}

type Comparison = measure::Comparison<Way>;

/// Whether the exit code speaks for it: the promise is about the smallest program. Where ours costs
/// more with another one, the text says so all the same.
fn is_promised(comparison: &Comparison) -> bool {
    comparison.subject == Payload::True.name()
}

/// Whether ours took less time than bubblewrap, in the median.
fn is_ours_cheaper(comparison: &Comparison) -> bool {
    comparison.median(Way::Ours) < comparison.median(Way::Bubblewrap)
}

/// Measures, prints, writes the results, and ends with 1 if a promise was not kept.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let rounds = if plan.quick { QUICK_ROUNDS } else { plan.rounds };
    let prepared = start_backend(NativeOptions::default().spare)?;
    let unprepared = start_backend(Spare::Keep(0))?;
    let host = HostFacts::gather(&prepared.describe_cgroups());
    let mut comparisons = Vec::new();
    let mut not_enforced = Vec::new();
    for payload in Payload::ALL {
        let cases = [
            Case::bare(payload),
            Case::bubblewrap(payload)?,
            Case::ours(payload, Way::Ours, &prepared),
            Case::ours(payload, Way::OursUnprepared, &unprepared),
        ];
        not_enforced = cases[2].not_enforced()?;
        let rounds = match payload {
            Payload::True => rounds,
            Payload::Python => rounds.div_ceil(PYTHON_FACTOR),
        };
        for pacing in Pacing::COMPARED {
            let series = measure(&cases, payload, pacing, pacing.rounds(rounds))?;
            comparisons.push(Comparison {
                subject: payload.name(),
                version: String::new(),
                pacing,
                series: cases.iter().map(|case| case.way).zip(series).collect(),
            });
        }
    }
    let protections = protections::costs(rounds)?;
    let findings = Findings { host, comparisons, protections, not_enforced };
    let (text, json) = (show::render(&findings), show::to_json(&findings));
    table::publish("cold", &text, &json, Some(&plan.results))?;
    let is_broken = findings.dearer().any(is_promised);
    Ok(ExitCode::from(u8::from(is_broken)))
}
