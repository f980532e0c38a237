//! Which backends there are on this host, and which of them is taken where the choice is ours.

use std::collections::BTreeSet;

use sandbox_backends::docker::DockerBackend;
use sandbox_backends::native::{NativeOptions, Spare};
use sandbox_backends::oci::OciBackend;
use sandbox_core::{Backend, BackendError, Coverage, Isolation, Protection, with_causes};

use crate::backend::{self, ContainerOptions};

/// How a backend fares on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsolationStatus {
    /// Which one.
    pub isolation: Isolation,
    /// Why it cannot be used and what to do about it, if it cannot.
    pub unavailable: Option<String>,
    /// What it enforces on this host.
    pub enforced: Vec<Protection>,
    /// What it could enforce on another host and cannot on this one.
    pub lacks: Vec<Protection>,
}

impl IsolationStatus {
    fn coverage(&self) -> Coverage {
        let set = |list: &[Protection]| list.iter().copied().collect();
        Coverage { enforced: set(&self.enforced), lacks_here: set(&self.lacks) }
    }
}

/// What was taken, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice<T> {
    pub(crate) taken: T,
    pub(crate) reason: String,
}

/// A backend that can be used, and what it enforces here.
pub(crate) type Usable<T> = (T, Coverage);

/// Looks at every backend there is. Nothing of that stays on the host.
pub(crate) fn probe_all(containers: &ContainerOptions) -> Vec<IsolationStatus> {
    let look = |isolation: &Isolation| {
        let (unavailable, coverage) = match probe(*isolation, containers) {
            Ok(coverage) => (None, coverage),
            Err(error) => (Some(with_causes(&error)), Coverage::default()),
        };
        let lacks = coverage.lacks_here.iter().copied().collect();
        let enforced = coverage.enforced.into_iter().collect();
        IsolationStatus { isolation: *isolation, unavailable, enforced, lacks }
    };
    Isolation::ALL.iter().map(look).collect()
}

/// What is taken of these in this order of preference, and why. The error says why none is.
pub fn preferred(
    order: &[Isolation],
    found: &[IsolationStatus],
) -> Result<(Isolation, String), String> {
    let choice = choose(order, &BTreeSet::new(), |isolation| {
        let status = found.iter().find(|status| status.isolation == isolation);
        let status = status.ok_or_else(|| "nobody looked for it".to_owned())?;
        match &status.unavailable {
            Some(reason) => Err(reason.clone()),
            None => Ok((isolation, status.coverage())),
        }
    });
    choice.map(|choice| (choice.taken, choice.reason))
}

/// Takes the first backend of the order that can be used, lacks nothing here and enforces all that the backends before it
/// enforce by design. What `allowed` names may be missing, and so may what only stands behind other protections.
///
/// If there is none, takes the first that lacks something here but enforces no less by design than those before it: it
/// refuses what it cannot enforce by itself, by name. A backend that enforces less than one before it is never taken. The
/// error says why none is.
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
        let (taken, coverage) = match attempt(isolation) {
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
            return Ok(Choice { taken, reason });
        }
        let names: Vec<_> = missing.iter().map(|protection| protection.name()).collect();
        passed_over.push(format!("{isolation} cannot enforce {} here", names.join(", ")));
        if !falls_short {
            incomplete.get_or_insert((isolation, taken));
        }
    }
    let passed_over = passed_over.join("; ");
    let Some((isolation, taken)) = incomplete else {
        return Err(passed_over);
    };
    let reason = format!(
        "auto: {passed_over}; none enforces everything here, and {isolation} is the first that is not weaker by design"
    );
    Ok(Choice { taken, reason })
}

fn reason(isolation: Isolation, passed_over: &[String]) -> String {
    if passed_over.is_empty() {
        return isolation.reason_of_first();
    }
    format!("auto: {}; {isolation} is next", passed_over.join("; "))
}

/// What a backend enforces on a host that has everything, whether it can be used here or not.
fn by_design(isolation: Isolation) -> Vec<Protection> {
    match isolation {
        Isolation::Docker => DockerBackend::by_design(),
        Isolation::Runc | Isolation::Gvisor => OciBackend::by_design(isolation),
        _ => Protection::ALL.to_vec(),
    }
}

/// Starts one after the other until one enforces everything, and says why it was that one.
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
        Ok(choice) => Ok((choice.taken, Some(choice.reason))),
        // What was the only one to try speaks for itself.
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

/// What a backend enforces here, or why it cannot be used.
fn probe(isolation: Isolation, containers: &ContainerOptions) -> Result<Coverage, BackendError> {
    match isolation {
        Isolation::Docker => DockerBackend::probe(&containers.docker),
        Isolation::Runc => OciBackend::probe_runc(&containers.oci),
        Isolation::Gvisor => OciBackend::probe_gvisor(),
        // Whether the kernel lets somebody build walls is known when they stand.
        other => {
            let little =
                NativeOptions { spare: Spare::Once(0), most_warm: 0, ..NativeOptions::default() };
            backend::start(other, &little, containers).map(|backend| backend.coverage())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &[Isolation] = &[Isolation::Native, Isolation::Runc];

    /// What an isolation enforces where the host lacks these.
    fn lacking(isolation: Isolation, lacks: &[Protection]) -> Coverage {
        let lacks_here = lacks.iter().copied().collect();
        let design = by_design(isolation).into_iter();
        Coverage { enforced: design.filter(|name| !lacks.contains(name)).collect(), lacks_here }
    }

    /// Chooses where the host lacks these, and where some isolations cannot be used.
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
    fn the_first_that_enforces_everything_is_taken_and_the_rest_is_left_alone() {
        let mut tried = Vec::new();
        let choice = choose(ORDER, &BTreeSet::new(), |isolation| {
            tried.push(isolation);
            Ok((isolation, lacking(isolation, &[])))
        });
        let reason = "auto: native is first in the order of preference".to_owned();
        assert_eq!(choice, Ok(Choice { taken: Isolation::Native, reason }));
        assert_eq!(tried, [Isolation::Native]);
    }

    #[test]
    fn an_isolation_that_enforces_less_than_one_before_it_is_never_taken() {
        let all: Vec<_> = Isolation::ALL.to_vec();
        let reversed: Vec<_> = all.iter().rev().copied().collect();
        for order in [&all, &reversed] {
            for missing in Protection::ALL {
                for unavailable in Isolation::ALL {
                    let Ok(choice) = chosen(order, &[*missing], &[*unavailable], &[]) else {
                        continue;
                    };
                    let taken = by_design(choice.taken);
                    let before = order.iter().take_while(|other| **other != choice.taken);
                    for other in before {
                        let mut design = by_design(*other).into_iter();
                        assert!(
                            design.all(|name| name.is_defense_in_depth() || taken.contains(&name)),
                            "{} instead of {other} without {missing}",
                            choice.taken
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_first_lacks_is_not_a_reason_to_take_a_weaker_one() {
        let choice = chosen(Isolation::ALL, &[Protection::Landlock], &[], &[]).unwrap();
        // It refuses the request by itself.
        assert_eq!(choice.taken, Isolation::Native);
        for part in [
            "auto: native cannot enforce landlock here; ",
            "runc cannot enforce time-namespace, private-inodes, landlock here; ",
            "native is the first that is not weaker by design",
        ] {
            assert!(choice.reason.contains(part), "{}", choice.reason);
        }
        let choice = chosen(ORDER, &[Protection::Landlock], &[], &[Protection::Landlock]).unwrap();
        assert_eq!(choice.reason, Isolation::Native.reason_of_first());
    }

    #[test]
    fn a_weaker_one_is_taken_if_what_it_lacks_may_be_missing() {
        let refused = chosen(ORDER, &[], &[Isolation::Native], &[]).unwrap_err();
        assert_eq!(
            refused,
            "native is not available here: not installed; runc cannot enforce time-namespace, private-inodes here"
        );
        let allowed = [Protection::TimeNamespace, Protection::PrivateInodes];
        let choice = chosen(ORDER, &[], &[Isolation::Native], &allowed).unwrap();
        assert_eq!(
            (choice.taken, &*choice.reason),
            (Isolation::Runc, "auto: native is not available here: not installed; runc is next")
        );
    }

    #[test]
    fn whoever_puts_another_first_gets_it() {
        let order = [Isolation::Runc, Isolation::Native];
        assert_eq!(chosen(&order, &[], &[], &[]).unwrap().taken, Isolation::Runc);
        let choice = chosen(&order, &[], &[Isolation::Runc], &[]).unwrap();
        assert_eq!(choice.taken, Isolation::Native);
    }

    #[test]
    fn where_none_enforces_everything_the_first_that_is_not_weaker_is_taken() {
        let choice = chosen(ORDER, &[Protection::Memory], &[Isolation::Runc], &[]).unwrap();
        assert_eq!(choice.taken, Isolation::Native);
        let reason = choice.reason;
        assert!(reason.starts_with("auto: native cannot enforce memory here; runc is not "));
    }

    #[test]
    fn where_nothing_can_be_used_each_says_why() {
        assert_eq!(
            chosen(ORDER, &[], ORDER, &[]),
            Err("native is not available here: not installed; runc is not available here: not \
                 installed"
                .to_owned())
        );
    }
}
