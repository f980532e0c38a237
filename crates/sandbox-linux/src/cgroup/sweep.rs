//! Removes what dead processes left. This never kills: a leftover with members may be a sandbox
//! whose launcher is still cleaning up, so it is reported and kept.

use rustix::io::Errno;

use super::file::Directory;
use super::name::Creator;

/// The result of a sweep.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SweepOutcome {
    /// The directories that were removed.
    pub removed: Vec<String>,
    /// Matching directories that were kept, each with the reason.
    pub kept: Vec<(String, String)>,
}

/// Sweeps the cgroups in one directory and adds to the result.
pub(crate) fn sweep_directory(parent: &Directory, outcome: &mut SweepOutcome) {
    let names = match parent.children() {
        Ok(names) => names,
        Err(error) => {
            outcome.kept.push((parent.path().display().to_string(), error.in_full()));
            return;
        }
    };
    for name in names {
        let Some(creator) = Creator::of_cgroup(&name) else {
            continue;
        };
        let path = parent.path().join(&name).display().to_string();
        if creator.is_alive() {
            let reason = format!("its creator, process {}, is running", creator.process);
            outcome.kept.push((path, reason));
            continue;
        }
        // It may be a cgroup around others, which must be removed first.
        if let Ok(outer) = parent.open_child(&name) {
            sweep_directory(&outer, outcome);
        }
        // The kernel refuses to remove a cgroup with members, so there is nothing to check first.
        match parent.remove_child(&name) {
            Ok(()) => outcome.removed.push(path),
            Err(error) if error.errno() == Some(Errno::NOENT) => {}
            Err(error) => {
                let members = parent.open_child(&name).and_then(|child| child.processes());
                let reason = match members {
                    Ok(members) if !members.is_empty() => {
                        format!("its creator is dead, but processes {members:?} are in it")
                    }
                    _ => error.in_full(),
                };
                outcome.kept.push((path, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::name;
    use super::*;

    #[test]
    fn a_cgroup_around_others_goes_after_them() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Directory::open(folder.path()).unwrap();
        let outer = parent.make_child("sandbox-run.4294967295.1.0").unwrap();
        outer.make_child("sandbox-run.4294967295.1.1").unwrap();
        outer.make_child("sandbox-run.4294967295.1.2").unwrap();

        let mut outcome = SweepOutcome::default();
        sweep_directory(&parent, &mut outcome);

        assert_eq!((outcome.removed.len(), outcome.kept.len()), (3, 0), "{outcome:?}");
        assert!(parent.children().unwrap().is_empty());
    }

    #[test]
    fn only_empty_leftovers_of_dead_processes_go() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Directory::open(folder.path()).unwrap();
        let living = name::fresh().unwrap();
        let Creator { process, start_time } = Creator::current().unwrap();
        let reused = format!("sandbox-run.{process}.{}.0", start_time + 1);
        let (dead, busy) = ("sandbox-run.4294967295.1.0", "sandbox-run.4294967295.1.1");
        for name in [living.as_str(), &reused, dead, busy, "sandbox-run", "somebody-else"] {
            parent.make_child(name).unwrap();
        }
        // A file blocks the removal of an ordinary directory like members block that of a cgroup.
        std::fs::write(folder.path().join(busy).join("cgroup.procs"), "77\n").unwrap();

        let mut outcome = SweepOutcome::default();
        sweep_directory(&parent, &mut outcome);

        let full = |name: &str| folder.path().join(name).display().to_string();
        outcome.removed.sort();
        let mut expected = vec![full(&reused), full(dead)];
        expected.sort();
        assert_eq!(outcome.removed, expected);
        outcome.kept.sort();
        let mut kept = vec![
            (full(&living), format!("its creator, process {process}, is running")),
            (full(busy), "its creator is dead, but processes [77] are in it".to_owned()),
        ];
        kept.sort();
        assert_eq!(outcome.kept, kept);
        let mut left = parent.children().unwrap();
        left.sort();
        let mut expected = vec![living, busy.into(), "sandbox-run".into(), "somebody-else".into()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
