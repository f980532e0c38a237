//! The cost of each protection: the same run with one protection off at a time.

use std::collections::BTreeSet;

use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};
use sandbox_core::Protection;

use crate::cases::{Case, Payload, Way, start_backend_without};
use crate::measure::{Difference, Pacing, Series, measure};

/// Protections that can be turned off and that cost something while a sandbox is built.
const PROTECTIONS: &[Protection] = &[
    Protection::Seccomp,
    Protection::Landlock,
    Protection::NetNamespace,
    Protection::PidNamespace,
    Protection::IpcNamespace,
    Protection::UtsNamespace,
    Protection::CgroupNamespace,
    Protection::TimeNamespace,
    Protection::PrivateInodes,
    Protection::InotifyLimits,
    Protection::IpcLimits,
    Protection::Keyring,
    Protection::Capabilities,
    Protection::Rlimits,
    Protection::Session,
];

/// Slots of the run before are not prepared again while the next one is measured.
const PACING: Pacing = Pacing::Refilled;

/// The time that one protection adds to a run.
pub(super) struct ProtectionCost {
    pub(super) protection: Protection,
    /// With spare slots, as by default.
    pub(super) prepared: Difference,
    /// With nothing prepared.
    pub(super) unprepared: Difference,
}

/// Measures a run without each protection against the run with all of them.
pub(super) fn costs(rounds: usize) -> anyhow::Result<Vec<ProtectionCost>> {
    let prepared = costs_with(NativeOptions::default().spare, Way::Ours, rounds)?;
    let unprepared = costs_with(Spare::Keep(0), Way::OursUnprepared, rounds)?;
    let costs = PROTECTIONS.iter().zip(prepared.into_iter().zip(unprepared));
    Ok(costs
        .map(|(protection, (prepared, unprepared))| ProtectionCost {
            protection: *protection,
            prepared,
            unprepared,
        })
        .collect())
}

fn costs_with(spare: Spare, way: Way, rounds: usize) -> anyhow::Result<Vec<Difference>> {
    let none = std::iter::once(BTreeSet::new());
    let each = PROTECTIONS.iter().map(|protection| BTreeSet::from([*protection]));
    let backends: Vec<NativeBackend> = none
        .chain(each)
        .map(|without| start_backend_without(spare, without))
        .collect::<Result<_, _>>()?;
    let cases: Vec<Case<'_>> =
        backends.iter().map(|backend| Case::ours(Payload::True, way, backend)).collect();
    let series = measure(&cases, Payload::True, PACING, PACING.rounds(rounds))?;
    let Some((whole, without_one)) = series.split_first() else {
        return Ok(Vec::new());
    };
    let cost = |without: &Series| whole.difference_by_round(without);
    Ok(without_one.iter().map(cost).collect())
}
