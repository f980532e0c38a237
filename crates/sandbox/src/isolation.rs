//! Which backends there are on this host, and which of them is taken where the choice is ours.

use sandbox_backends::docker::{DockerBackend, DockerOptions};
use sandbox_backends::native::{NativeOptions, Spare};
use sandbox_backends::oci::{OciBackend, OciOptions};
use sandbox_core::{Backend, BackendError, Isolation, Protection, with_causes};

use crate::sandbox::start_backend;

/// How a backend fares on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsolationStatus {
    /// Which one.
    pub isolation: Isolation,
    /// Why it cannot be used and what to do about it, if it cannot.
    pub unavailable: Option<String>,
    /// What it could enforce on another host and cannot on this one.
    pub lacks: Vec<Protection>,
}

/// What was taken, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice<T> {
    pub(crate) taken: T,
    pub(crate) reason: String,
}

/// A backend that can be used, and what it lacks here.
pub(crate) type Usable<T> = (T, Vec<Protection>);

/// What builds containers, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerOptions {
    pub(crate) docker: DockerOptions,
    pub(crate) oci: OciOptions,
}

/// Looks at every backend there is. Nothing of that stays on the host.
pub(crate) fn look_at_all(containers: &ContainerOptions) -> Vec<IsolationStatus> {
    let look = |isolation: &Isolation| {
        let (unavailable, lacks) = match probe(*isolation, containers) {
            Ok(lacks) => (None, lacks),
            Err(error) => (Some(with_causes(&error)), Vec::new()),
        };
        IsolationStatus { isolation: *isolation, unavailable, lacks }
    };
    Isolation::ALL.iter().map(look).collect()
}

/// What is taken of these in this order of preference, and why; nothing if none can be used.
pub fn preferred(order: &[Isolation], found: &[IsolationStatus]) -> Option<(Isolation, String)> {
    let choice = choose(order, |isolation| {
        let status = found.iter().find(|status| status.isolation == isolation);
        let status = status.ok_or_else(|| "nobody looked for it".to_owned())?;
        match &status.unavailable {
            Some(reason) => Err(reason.clone()),
            None => Ok((isolation, status.lacks.clone())),
        }
    });
    choice.ok().map(|choice| (choice.taken, choice.reason))
}

/// Tries one after the other and takes the first that is at full function; if there is none, the first that can be used at
/// all. The error says why none can.
pub(crate) fn choose<T>(
    order: &[Isolation],
    mut attempt: impl FnMut(Isolation) -> Result<Usable<T>, String>,
) -> Result<Choice<T>, String> {
    let mut passed_over = Vec::new();
    let mut usable = None;
    for &isolation in order {
        match attempt(isolation) {
            Ok((taken, lacks)) if lacks.is_empty() => {
                let reason = reason(isolation, &passed_over);
                return Ok(Choice { taken, reason });
            }
            Ok((taken, lacks)) => {
                let names: Vec<_> = lacks.iter().map(|protection| protection.name()).collect();
                passed_over.push(format!("{isolation} cannot enforce {} here", names.join(", ")));
                usable.get_or_insert((isolation, taken));
            }
            Err(why) => passed_over.push(format!("{isolation} is not available here: {why}")),
        }
    }
    let passed_over = passed_over.join("; ");
    let (isolation, taken) = usable.ok_or_else(|| passed_over.clone())?;
    let reason = format!(
        "auto: {passed_over}; none does everything, and {isolation} is the first that can be used"
    );
    Ok(Choice { taken, reason })
}

fn reason(isolation: Isolation, passed_over: &[String]) -> String {
    if passed_over.is_empty() {
        return isolation.reason_of_first();
    }
    format!("auto: {}; {isolation} is next", passed_over.join("; "))
}

/// Starts one after the other until one does everything, and says why it was that one.
pub(crate) fn start_preferred(
    order: &[Isolation],
    native: &NativeOptions,
    containers: &ContainerOptions,
) -> Result<(Box<dyn Backend>, Option<String>), BackendError> {
    let mut errors = Vec::new();
    let choice = choose(order, |isolation| match start_backend(isolation, native, containers) {
        Ok(backend) => {
            let lacks = lacks(&*backend);
            Ok((backend, lacks))
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
        Err(_) if errors.len() == 1 => Err(errors.remove(0)),
        Err(reasons) => {
            let step = "no isolation can be used here".to_owned();
            Err(BackendError::Failed { step, cause: reasons.into() })
        }
    }
}

/// What a backend lacks here.
pub(crate) fn lacks(backend: &dyn Backend) -> Vec<Protection> {
    backend.lacks_here().iter().map(|missing| missing.protection).collect()
}

/// The same, or why it cannot be used.
fn probe(
    isolation: Isolation,
    containers: &ContainerOptions,
) -> Result<Vec<Protection>, BackendError> {
    match isolation {
        Isolation::Docker => DockerBackend::probe(&containers.docker).map(|()| Vec::new()),
        Isolation::Runc => OciBackend::probe_runc(&containers.oci).map(|()| Vec::new()),
        Isolation::Gvisor => OciBackend::probe_gvisor().map(|()| Vec::new()),
        // Whether the kernel lets somebody build walls is known when they stand.
        other => {
            let little =
                NativeOptions { spare: Spare::Once(0), most_warm: 0, ..NativeOptions::default() };
            start_backend(other, &little, containers).map(|backend| lacks(&*backend))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &[Isolation] = &[Isolation::Native, Isolation::Runc];

    fn chosen(found: [Result<Vec<Protection>, &str>; 2]) -> Result<Choice<Isolation>, String> {
        let mut found = found.into_iter();
        choose(ORDER, |isolation| {
            let next = found.next().expect("each is tried once");
            next.map(|lacks| (isolation, lacks)).map_err(str::to_owned)
        })
    }

    fn taken(found: [Result<Vec<Protection>, &str>; 2]) -> (Isolation, String) {
        let choice = chosen(found).unwrap();
        (choice.taken, choice.reason)
    }

    #[test]
    fn the_first_that_does_everything_is_taken_and_the_rest_is_left_alone() {
        let mut tried = Vec::new();
        let choice = choose(ORDER, |isolation| {
            tried.push(isolation);
            Ok((isolation, Vec::new()))
        });
        let reason = "auto: native is first in the order of preference".to_owned();
        assert_eq!(choice, Ok(Choice { taken: Isolation::Native, reason }));
        assert_eq!(tried, [Isolation::Native]);
    }

    #[test]
    fn what_cannot_be_used_or_lacks_something_is_passed_over_with_its_reason() {
        assert_eq!(
            taken([Err("no namespaces"), Ok(Vec::new())]),
            (
                Isolation::Runc,
                "auto: native is not available here: no namespaces; runc is next".to_owned()
            )
        );
        assert_eq!(
            taken([Ok(vec![Protection::Landlock]), Ok(Vec::new())]),
            (Isolation::Runc, "auto: native cannot enforce landlock here; runc is next".to_owned())
        );
    }

    #[test]
    fn where_nothing_does_everything_the_first_that_can_be_used_is_taken() {
        let (isolation, reason) = taken([Ok(vec![Protection::Memory]), Err("not installed")]);
        assert_eq!(isolation, Isolation::Native);
        assert!(reason.starts_with("auto: native cannot enforce memory here; runc is not "));
        assert!(reason.ends_with("and native is the first that can be used"), "{reason}");
    }

    #[test]
    fn where_nothing_can_be_used_each_says_why() {
        assert_eq!(
            chosen([Err("no namespaces"), Err("not installed")]),
            Err("native is not available here: no namespaces; runc is not available here: not installed"
                .to_owned())
        );
    }
}
