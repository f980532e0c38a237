//! The cold benchmark: measure, print, write the results, check the promise.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use sandbox_backends::native::{NativeOptions, Spare};
use sandbox_core::Protection;

use crate::cases::{Case, Payload, Way, start_backend};
use crate::host::HostFacts;
use crate::measure::{Pacing, Series, measure};
use crate::protections::{self, ProtectionCost};
use crate::{record, table};

/// A Python run takes about as long as this many of the small program.
const PYTHON_FACTOR: usize = 3;

/// All results.
pub(crate) struct Findings {
    pub(crate) host: HostFacts,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) protections: Vec<ProtectionCost>,
    /// Protections that this host does not support.
    pub(crate) not_enforced: Vec<Protection>,
}

impl Findings {
    /// Where ours did not cost less than bubblewrap.
    pub(crate) fn dearer(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|comparison| !comparison.is_ours_cheaper())
    }
}

/// One program in one pacing, run in every way.
pub(crate) struct Comparison {
    pub(crate) payload: Payload,
    pub(crate) pacing: Pacing,
    pub(crate) series: Vec<(Way, Series)>,
}

impl Comparison {
    pub(crate) fn series_of(&self, wanted: Way) -> Option<&Series> {
        let mut found = self.series.iter().filter(|(way, _)| *way == wanted);
        found.next().map(|(_, series)| series)
    }

    /// Whether the exit code speaks for it: the promise is about the smallest program. Where ours costs
    /// more with another one, the text says so all the same.
    pub(crate) fn is_promised(&self) -> bool {
        self.payload == Payload::True
    }

    /// Whether ours took less time than bubblewrap, in the median.
    pub(crate) fn is_ours_cheaper(&self) -> bool {
        let median = |way| self.series_of(way).map(|series| series.summary().median);
        median(Way::Ours) < median(Way::Bubblewrap)
    }
}

/// Measures, prints, writes the results, and ends with 1 if a promise was not kept.
pub(crate) fn run(rounds: usize, results: &Path) -> anyhow::Result<ExitCode> {
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
                payload,
                pacing,
                series: cases.iter().map(|case| case.way).zip(series).collect(),
            });
        }
    }
    let protections = protections::costs(rounds)?;
    let findings = Findings { host, comparisons, protections, not_enforced };
    let text = table::render(&findings);
    std::io::stdout().write_all(text.as_bytes()).context("print the results")?;
    record::write(&findings, &text, results)?;
    let is_broken = findings.dearer().any(Comparison::is_promised);
    Ok(ExitCode::from(u8::from(is_broken)))
}
