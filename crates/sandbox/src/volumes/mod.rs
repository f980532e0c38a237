//! Resolves the volumes of a request, and checks whether they are allowed.
//!
//! A host path is resolved here, once, and the resolved path is checked and mounted. The mount follows no links: if a link
//! appears on the path after the check, the mount is refused.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sandbox_core::{InvalidVolume, Volume};

mod kernel;

/// Host directories that volumes may be in; any by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumePlaces {
    only: Option<Vec<PathBuf>>,
}

impl VolumePlaces {
    /// Allows only these directories and paths below them. They are resolved now: a link that later replaces one of them
    /// allows nothing more.
    pub(crate) fn only(places: impl IntoIterator<Item = PathBuf>) -> Self {
        let resolve = |place: PathBuf| place.canonicalize().unwrap_or(place);
        Self { only: Some(places.into_iter().map(resolve).collect()) }
    }

    /// The volumes to mount, with resolved host paths.
    pub(crate) fn resolve(&self, volumes: &[Volume]) -> Result<Vec<Volume>, InvalidVolume> {
        volumes.iter().map(|volume| self.resolve_one(volume)).collect()
    }

    fn resolve_one(&self, volume: &Volume) -> Result<Volume, InvalidVolume> {
        let host = match volume.host().canonicalize() {
            Ok(host) => host,
            // Do not reveal whether a path exists where volumes are not allowed.
            Err(_) if !self.allow(volume.host()) => return Err(self.not_allowed(volume)),
            Err(error) => {
                return Err(volume.refused(format!("cannot access the host path: {error}")));
            }
        };
        if !self.allow(&host) {
            return Err(self.not_allowed(volume));
        }
        let real = volume.leading_to(&host)?;
        if let Some(reason) = kind_to_refuse(&host) {
            return Err(volume.refused(reason));
        }
        kernel::refuse_its_own(&host).map_err(|reason| volume.refused(reason))?;
        Ok(real)
    }

    fn allow(&self, host: &Path) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|places| places.iter().any(|place| host.starts_with(place)))
    }

    fn not_allowed(&self, volume: &Volume) -> InvalidVolume {
        let reason = match self.only.as_deref() {
            None | Some([]) => "no volumes are allowed here",
            Some(_) => "it is not in a directory that is allowed for volumes",
        };
        volume.refused(reason)
    }
}

/// Refuses everything but directories and regular files: sockets, pipes and devices reach other processes or the kernel.
fn kind_to_refuse(host: &Path) -> Option<String> {
    let kind = match host.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) => return Some(format!("cannot access the host path: {error}")),
    };
    let is = if kind.is_dir() || kind.is_file() {
        return None;
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_symlink() {
        "a link that was not there before"
    } else {
        "a device"
    };
    Some(format!("it is {is}; only directories and regular files can be volumes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_core::VolumeAccess;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn resolve(places: &VolumePlaces, host: &Path) -> Result<PathBuf, String> {
        let volume = Volume::new(host, Path::new("/data"), VolumeAccess::ReadOnly).unwrap();
        let resolved = places.resolve(&[volume]).map_err(|error| error.to_string())?;
        Ok(resolved[0].host().to_owned())
    }

    /// A directory whose own path has no links on it, with `in/sub` and `out` in it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("in/sub")).unwrap();
        std::fs::create_dir(path.join("out")).unwrap();
        (directory, path)
    }

    #[test]
    fn links_are_resolved_and_what_they_lead_to_is_what_counts() {
        let (_directory, path) = place();
        let anywhere = VolumePlaces::default();
        symlink("in", path.join("link")).unwrap();
        assert_eq!(resolve(&anywhere, &path.join("link/sub")), Ok(path.join("in/sub")));
        for (name, target) in [
            ("to-root", "/"),
            ("to-proc", "/proc"),
            ("to-self", "/proc/self"),
            ("to-sys", "/sys"),
            ("to-dev", "/dev"),
            ("twice", "to-proc"),
        ] {
            symlink(target, path.join(name)).unwrap();
            let refused = resolve(&anywhere, &path.join(name)).unwrap_err();
            assert!(refused.contains(name) && refused.contains("never shared"), "{refused}");
        }
        let through = resolve(&anywhere, &path.join("to-root/proc/self/root")).unwrap_err();
        assert!(through.contains("never shared"), "{through}");
    }

    #[test]
    fn what_is_neither_a_directory_nor_a_plain_file_is_refused_by_its_kind() {
        let (_directory, path) = place();
        let _listener = UnixListener::bind(path.join("socket")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        symlink("socket", path.join("link")).unwrap();
        std::fs::write(path.join("file"), "").unwrap();
        let anywhere = VolumePlaces::default();
        for (name, kind) in [("socket", "a socket"), ("link", "a socket"), ("pipe", "a pipe")] {
            let refused = resolve(&anywhere, &path.join(name)).unwrap_err();
            assert!(refused.contains(kind) && !refused.contains('\n'), "{refused}");
        }
        assert!(resolve(&anywhere, &path.join("file")).is_ok());
        let refused = resolve(&anywhere, &path.join("nothing")).unwrap_err();
        assert!(refused.contains("No such file"), "{refused}");
    }

    #[test]
    fn only_what_lies_at_or_below_an_allowed_place_is_shared() {
        let (_directory, path) = place();
        let allowed = VolumePlaces::only([path.join("in"), path.join("later")]);
        symlink("../out", path.join("in/leads-out")).unwrap();
        symlink("in", path.join("leads-in")).unwrap();
        std::fs::create_dir(path.join("inner")).unwrap();
        for good in ["in", "in/sub", "leads-in/sub"] {
            assert!(resolve(&allowed, &path.join(good)).is_ok(), "{good}");
        }
        for bad in ["", "out", "inner", "in/leads-out", "leads-in/leads-out", "nothing"] {
            let refused = resolve(&allowed, &path.join(bad)).unwrap_err();
            assert!(refused.contains("not in a directory that is allowed"), "{bad}: {refused}");
        }
        // What was no place when it was allowed does not become another one.
        symlink("out", path.join("later")).unwrap();
        assert!(resolve(&allowed, &path.join("later")).is_err());
        let refused = resolve(&VolumePlaces::only([]), &path.join("in")).unwrap_err();
        assert!(refused.contains("no volumes are allowed"), "{refused}");
    }

    #[test]
    fn a_place_that_is_replaced_by_a_link_allows_what_it_did() {
        let (_directory, path) = place();
        let allowed = VolumePlaces::only([path.join("in")]);
        std::fs::rename(path.join("in"), path.join("was-in")).unwrap();
        symlink("/", path.join("in")).unwrap();
        assert!(resolve(&allowed, Path::new("/usr")).is_err());
        assert!(resolve(&allowed, &path.join("in/usr")).is_err());
    }
}
