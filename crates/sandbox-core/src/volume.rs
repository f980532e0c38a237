use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// Whether a program may write to a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VolumeAccess {
    /// Read-only.
    #[default]
    ReadOnly,
    /// Writes go to the host directory, with the caller as owner.
    ReadWrite,
}

/// A host directory that the caller mounts into the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    host: PathBuf,
    destination: PathBuf,
    access: VolumeAccess,
}

/// A volume that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the volume '{text}' is refused: {reason}")]
pub struct InvalidVolume {
    text: String,
    reason: String,
}

/// Host paths that would expose the machine rather than some files.
const FORBIDDEN_HOST_PATHS: &[&str] = &["/", "/proc", "/sys", "/dev", "/run", "/boot"];
/// Paths inside the sandbox that it uses itself.
const RESERVED_PATHS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/proc", "/sys",
];

impl Volume {
    /// Checks the form of both paths. The host path is resolved when a sandbox is started for the
    /// request.
    pub fn new(
        host: &Path,
        destination: &Path,
        access: VolumeAccess,
    ) -> Result<Self, InvalidVolume> {
        let refuse = |reason: String| InvalidVolume {
            text: format!("{}:{}", host.display(), destination.display()),
            reason,
        };
        for (name, path) in [("host", host), ("inside", destination)] {
            let plain =
                path.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
            if !path.is_absolute() || !plain {
                return Err(refuse(format!(
                    "the path on the {name} side must be absolute, without '..'"
                )));
            }
        }
        if let Some(place) =
            FORBIDDEN_HOST_PATHS.iter().find(|place| is_at_or_under_unless_root(host, place))
        {
            return Err(refuse(format!("{place} of the host is never shared")));
        }
        if destination == Path::new("/") {
            return Err(refuse("it cannot replace the root".to_owned()));
        }
        if let Some(place) = RESERVED_PATHS.iter().find(|place| destination.starts_with(place)) {
            return Err(refuse(format!("{place} inside belongs to the sandbox")));
        }
        Ok(Self { host: host.to_owned(), destination: destination.to_owned(), access })
    }

    /// The same volume at the target of its symbolic links. A path that is refused by name is
    /// refused as a target too.
    pub fn leading_to(&self, host: &Path) -> Result<Self, InvalidVolume> {
        if host == self.host {
            return Ok(self.clone());
        }
        Self::new(host, &self.destination, self.access).map_err(|error| {
            self.refused(format!("it leads to {}, and {}", host.display(), error.reason))
        })
    }

    /// An error about this volume.
    pub fn refused(&self, reason: impl Into<String>) -> InvalidVolume {
        let text = format!("{}:{}", self.host.display(), self.destination.display());
        InvalidVolume { text, reason: reason.into() }
    }

    /// The directory or file on the host.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// The path inside the sandbox.
    pub fn destination(&self) -> &Path {
        &self.destination
    }

    /// Whether the program can write to it.
    pub fn access(&self) -> VolumeAccess {
        self.access
    }
}

/// "/" refuses only itself; the others also refuse everything below them.
fn is_at_or_under_unless_root(path: &Path, place: &str) -> bool {
    if place == "/" { path == Path::new("/") } else { path.starts_with(place) }
}

impl FromStr for Volume {
    type Err = InvalidVolume;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse =
            |reason: &str| InvalidVolume { text: text.to_owned(), reason: reason.to_owned() };
        let parts: Vec<&str> = text.split(':').collect();
        let (host, destination, access) = match parts.as_slice() {
            [host, destination] | [host, destination, "ro"] => {
                (host, destination, VolumeAccess::ReadOnly)
            }
            [host, destination, "rw"] => (host, destination, VolumeAccess::ReadWrite),
            [_, _, _] => return Err(refuse("the third part is ro or rw")),
            _ => return Err(refuse("it is written HOST:DEST or HOST:DEST:rw")),
        };
        Self::new(Path::new(host), Path::new(destination), access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_unless_said_otherwise() {
        let volume: Volume = "/srv/data:/data".parse().unwrap();
        assert_eq!(volume.access(), VolumeAccess::ReadOnly);
        let volume: Volume = "/srv/data:/data:rw".parse().unwrap();
        assert_eq!(volume.access(), VolumeAccess::ReadWrite);
    }

    #[test]
    fn the_machine_itself_is_not_a_volume() {
        for text in [
            "/:/host",
            "/proc:/p",
            "/sys/fs:/s",
            "/dev:/d",
            "/run/docker.sock:/s",
            "/srv:/",
            "/srv:/usr/x",
            "srv:/x",
            "/srv:x",
            "/srv/../etc:/x",
            "/srv",
            "/srv:/x:rx",
            "/srv:/x:ro:ro",
        ] {
            assert!(text.parse::<Volume>().is_err(), "{text:?} was taken");
        }
    }
}
