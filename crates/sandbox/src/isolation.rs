//! Probes the backends of this host and selects one by an order of preference.

use std::collections::BTreeSet;

use sandbox_backends::docker::DockerBackend;
use sandbox_backends::native::{NativeOptions, Spare};
use sandbox_backends::oci::OciBackend;
use sandbox_core::{Backend, BackendError, Coverage, Feature, Isolation, Protection, with_causes};

use crate::backend::{self, ContainerOptions};

/// What a backend can do on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsolationStatus {
    /// The backend.
    pub isolation: Isolation,
    /// Why it cannot be used and how to fix that; `None` if it can be used.
    pub unavailable: Option<String>,
    /// Protections that it enforces on this host.
    pub enforced: Vec<Protection>,
    /// Protections that it supports but cannot enforce on this host.
    pub lacks: Vec<Protection>,
    /// What its sandboxes can do besides running one program.
    pub features: BTreeSet<Feature>,
}

impl IsolationStatus {
    fn coverage(&self) -> Coverage {
        let set = |list: &[Protection]| list.iter().copied().collect();
        let (enforced, lacks_here) = (set(&self.enforced), set(&self.lacks));
        Coverage { enforced, lacks_here, features: self.features.clone() }
    }
}

/// The selected backend and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice<T> {
    pub(crate) selected: T,
    pub(crate) reason: String,
}

/// A backend that can be used, and what it enforces on this host.
pub(crate) type Usable<T> = (T, Coverage);

/// Probes every backend. Leaves nothing on the host.
pub(crate) fn probe_all(containers: &ContainerOptions) -> Vec<IsolationStatus> {
    let look = |isolation: &Isolation| {
        let (unavailable, Coverage { enforced, lacks_here, features }) =
            match probe(*isolation, containers) {
                Ok(coverage) => (None, coverage),
                Err(error) => (Some(with_causes(&error)), Coverage::default()),
            };
        let (enforced, lacks) = (Vec::from_iter(enforced), Vec::from_iter(lacks_here));
        IsolationStatus { isolation: *isolation, unavailable, enforced, lacks, features }
    };
    Isolation::ALL.iter().map(look).collect()
}

/// Selects one of the probed backends by this order of preference, with the reason. The error says why none qualifies.
pub fn preferred(
    order: &[Isolation],
    found: &[IsolationStatus],
) -> Result<(Isolation, String), String> {
    let choice = choose(order, &BTreeSet::new(), |isolation| {
        let status = found.iter().find(|status| status.isolation == isolation);
        let status = status.ok_or_else(|| "it was not probed".to_owned())?;
        match &status.unavailable {
            Some(reason) => Err(reason.clone()),
            None => Ok((isolation, status.coverage())),
        }
    });
    choice.map(|choice| (choice.selected, choice.reason))
}

/// Selects the first backend of the order that can be used, lacks nothing on this host and enforces everything that the
/// backends before it enforce by design. Protections in `allowed` and pure defense in depth may be missing.
///
/// If there is none, selects the first that lacks something on this host but enforces no less by design than those before
/// it: that backend itself refuses requests it cannot enforce. A backend that enforces less by design than an earlier one
/// is never selected. The error says why none qualifies.
pub(crate) fn choose<T>(
    order: &[Isolation],
    allowed: &BTreeSet<Protection>,
    mut attempt: impl FnMut(Isolation) -> Result<Usable<T>, String>,
) -> Result<Choice<T>, String> {
    let mut passed_over = Vec::new();
    let mut needed = BTreeSet::new();
    let mut incomplete = None;
    let may_lack = |name: &Protection| name.is_defense_in_depth() || allowed.contains(name);
    for &isolation in order {
        let (selected, coverage) = match attempt(isolation) {
            Ok(usable) => usable,
            Err(why) => {
                passed_over.push(format!("{isolation} is not available here: {why}"));
                needed.extend(by_design(isolation));
                continue;
            }
        };
        let design = coverage.by_design();
        let falls_short = needed.iter().any(|name| !design.contains(name) && !may_lack(name));
        needed.extend(design);
        let missing = needed.difference(&coverage.enforced);
        let missing: Vec<_> = missing.filter(|name| !may_lack(name)).collect();
        if missing.is_empty() {
            let reason = reason(isolation, &passed_over);
            return Ok(Choice { selected, reason });
        }
        let names: Vec<_> = missing.iter().map(|protection| protection.name()).collect();
        passed_over.push(format!("{isolation} cannot enforce {} here", names.join(", ")));
        if !falls_short {
            incomplete.get_or_insert((isolation, selected));
        }
    }
    let passed_over = passed_over.join("; ");
    let Some((isolation, selected)) = incomplete else {
        return Err(passed_over);
    };
    let reason = format!(
        "auto: {passed_over}; none enforces everything here, and {isolation} is the first that is not weaker by design"
    );
    Ok(Choice { selected, reason })
}

fn reason(isolation: Isolation, passed_over: &[String]) -> String {
    if passed_over.is_empty() {
        return isolation.reason_of_first();
    }
    format!("auto: {}; {isolation} is next", passed_over.join("; "))
}

/// The protections that a backend enforces on a host that supports everything.
fn by_design(isolation: Isolation) -> Vec<Protection> {
    match isolation {
        Isolation::Docker => DockerBackend::by_design(),
        Isolation::Runc | Isolation::Gvisor => OciBackend::by_design(isolation),
        _ => Protection::ALL.to_vec(),
    }
}

/// Starts the backends in order until one enforces everything; returns it with the reason.
pub(crate) fn start_preferred(
    order: &[Isolation],
    allowed: &BTreeSet<Protection>,
    native: &NativeOptions,
    containers: &ContainerOptions,
) -> Result<(Box<dyn Backend>, Option<String>), BackendError> {
    let mut errors = Vec::new();
    let choice =
        choose(order, allowed, |isolation| match backend::start(isolation, native, containers) {
            Ok(backend) => {
                let coverage = backend.coverage();
                Ok((backend, coverage))
            }
            Err(error) => {
                let reason = with_causes(&error);
                errors.push(error);
                Err(reason)
            }
        });
    match choice {
        Ok(choice) => Ok((choice.selected, Some(choice.reason))),
        // The error of the only backend tried is clear enough.
        Err(_) if errors.len() == 1 && order.len() == 1 => Err(errors.remove(0)),
        Err(reasons) if errors.len() == order.len() => {
            let step = "no isolation can be used here".to_owned();
            Err(BackendError::Failed { step, cause: reasons.into() })
        }
        Err(reasons) => {
            let step = "no isolation enforces what the preferred one would; install what it lacks, \
                        name another with --isolation, or allow what that lacks with --allow-missing"
                .to_owned();
            Err(BackendError::Failed { step, cause: reasons.into() })
        }
    }
}

/// The protections that a backend enforces on this host, or why it cannot be used.
fn probe(isolation: Isolation, containers: &ContainerOptions) -> Result<Coverage, BackendError> {
    match isolation {
        Isolation::Docker => DockerBackend::probe(&containers.docker),
        Isolation::Runc => OciBackend::probe_runc(&containers.oci),
        Isolation::Gvisor => OciBackend::probe_gvisor(),
        // Only a start shows whether the kernel permits the native sandbox.
        other => {
            let minimal =
                NativeOptions { spare: Spare::Once(0), max_warm: 0, ..NativeOptions::default() };
            backend::start(other, &minimal, containers).map(|backend| backend.coverage())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &[Isolation] = &[Isolation::Native, Isolation::Runc];

    /// What a backend enforces on a host that lacks these.
    fn lacking(isolation: Isolation, lacks: &[Protection]) -> Coverage {
        let lacks_here = lacks.iter().copied().collect();
        let design = by_design(isolation).into_iter();
        let enforced = design.filter(|name| !lacks.contains(name)).collect();
        Coverage { enforced, lacks_here, ..Coverage::default() }
    }

    /// Selects a backend on a host that lacks some protections and some backends.
    fn chosen(
        order: &[Isolation],
        lacks: &[Protection],
        unavailable: &[Isolation],
        allowed: &[Protection],
    ) -> Result<Choice<Isolation>, String> {
        choose(order, &allowed.iter().copied().collect(), |isolation| {
            if unavailable.contains(&isolation) {
                return Err("not installed".to_owned());
            }
            let design = by_design(isolation);
            let lacks: Vec<_> =
                lacks.iter().copied().filter(|name| design.contains(name)).collect();
            Ok((isolation, lacking(isolation, &lacks)))
        })
    }

    #[test]
    fn the_first_backend_that_enforces_everything_is_selected_and_the_rest_is_not_started() {
        let mut tried = Vec::new();
        let choice = choose(ORDER, &BTreeSet::new(), |isolation| {
            tried.push(isolation);
            Ok((isolation, lacking(isolation, &[])))
        });
        let reason = "auto: native is first in the order of preference".to_owned();
        assert_eq!(choice, Ok(Choice { selected: Isolation::Native, reason }));
        assert_eq!(tried, [Isolation::Native]);
    }

    #[test]
    fn a_backend_that_enforces_less_than_an_earlier_one_is_never_selected() {
        let all: Vec<_> = Isolation::ALL.to_vec();
        let reversed: Vec<_> = all.iter().rev().copied().collect();
        for order in [&all, &reversed] {
            for missing in Protection::ALL {
                for unavailable in Isolation::ALL {
                    let Ok(choice) = chosen(order, &[*missing], &[*unavailable], &[]) else {
                        continue;
                    };
                    let taken = by_design(choice.selected);
                    let before = order.iter().take_while(|other| **other != choice.selected);
                    for other in before {
                        let mut design = by_design(*other).into_iter();
                        assert!(
                            design.all(|name| name.is_defense_in_depth() || taken.contains(&name)),
                            "{} instead of {other} without {missing}",
                            choice.selected
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_protection_missing_on_this_host_does_not_select_a_weaker_backend() {
        let choice = chosen(Isolation::ALL, &[Protection::Landlock], &[], &[]).unwrap();
        // It refuses such requests itself.
        assert_eq!(choice.selected, Isolation::Native);
        for part in [
            "auto: native cannot enforce landlock here; ",
            "runc cannot enforce time-namespace, landlock here; ",
            "native is the first that is not weaker by design",
        ] {
            assert!(choice.reason.contains(part), "{}", choice.reason);
        }
        let choice = chosen(ORDER, &[Protection::Landlock], &[], &[Protection::Landlock]).unwrap();
        assert_eq!(choice.reason, Isolation::Native.reason_of_first());
    }

    #[test]
    fn a_weaker_backend_is_selected_if_its_missing_protections_are_allowed() {
        let refused = chosen(ORDER, &[], &[Isolation::Native], &[]).unwrap_err();
        assert_eq!(
            refused,
            "native is not available here: not installed; runc cannot enforce time-namespace here"
        );
        let allowed = [Protection::TimeNamespace];
        let choice = chosen(ORDER, &[], &[Isolation::Native], &allowed).unwrap();
        assert_eq!(
            (choice.selected, &*choice.reason),
            (Isolation::Runc, "auto: native is not available here: not installed; runc is next")
        );
    }

    #[test]
    fn the_first_backend_of_the_order_is_selected() {
        let order = [Isolation::Runc, Isolation::Native];
        assert_eq!(chosen(&order, &[], &[], &[]).unwrap().selected, Isolation::Runc);
        let choice = chosen(&order, &[], &[Isolation::Runc], &[]).unwrap();
        assert_eq!(choice.selected, Isolation::Native);
    }

    #[test]
    fn without_a_complete_backend_the_first_that_is_not_weaker_is_selected() {
        let choice = chosen(ORDER, &[Protection::Memory], &[Isolation::Runc], &[]).unwrap();
        assert_eq!(choice.selected, Isolation::Native);
        let reason = choice.reason;
        assert!(reason.starts_with("auto: native cannot enforce memory here; runc is not "));
    }

    #[test]
    fn if_no_backend_can_be_used_the_error_names_each_reason() {
        assert_eq!(
            chosen(ORDER, &[], ORDER, &[]),
            Err("native is not available here: not installed; runc is not available here: not \
                 installed"
                .to_owned())
        );
    }
}
