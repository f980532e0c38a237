//! Files on the host while containers run, in a directory for each process. A later start
//! recognises by its name whether the process has ended, and then removes everything that belongs
//! to it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sandbox_core::{BackendError, Tree};
use sandbox_linux::agent::AGENT;
use sandbox_linux::cgroup::Hierarchy;
use sandbox_linux::skeleton::{Skeleton, make_place};

use super::ids::Ids;
use super::kind::Kind;
use super::runtime::Runtime;
use crate::container::{ContainerSpec, Kernel, Rootfs};
use crate::error::failed;
use crate::shared_directory::{again_if_gone, enter, leave, make_directory, open_directory, write};

/// Removed at the next boot, like containers.
const STATE_DIRECTORY: &str = "/run/sandbox-run-oci";

const ROOT: &str = "root";
const BUNDLES: &str = "bundles";
/// The file that records the runtime's path.
const RUNTIME: &str = "runtime";
/// The directory of ID blocks.
const IDS: &str = "ids";

/// The directory of this process.
pub(super) struct State {
    directory: PathBuf,
    /// The name of the runtime's state directory of a container.
    kind: Kind,
    /// What containers show.
    pub(super) root: Rootfs,
    number: AtomicU64,
}

impl State {
    pub(super) fn open(runtime: &Runtime, root: Rootfs) -> Result<Self, BackendError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        sweep();
        let prefix = Hierarchy::own_prefix();
        let prefix = prefix.map_err(|error| crate::error::failed("name a directory", error))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let opened = || {
            let directory = enter(Path::new(STATE_DIRECTORY), &format!("{prefix}{number}"))?;
            fill(&directory, &root.skeleton)?;
            runtime.note(&directory.join(RUNTIME))?;
            Ok(directory)
        };
        let directory = opened();
        let directory = directory
            .map_err(|error: io::Error| failed("make a directory for containers", error))?;
        let kind = runtime.kind;
        Ok(Self { directory, kind, root, number: AtomicU64::new(0) })
    }

    /// Prefix of the names of this process's containers.
    pub(super) fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The agent's executable.
    pub(super) fn agent(&self) -> PathBuf {
        self.directory.join("agent")
    }

    /// An empty directory.
    pub(super) fn empty(&self) -> PathBuf {
        self.directory.join("empty")
    }

    /// A directory for the next container, and its name.
    pub(super) fn new_bundle(&self) -> io::Result<(PathBuf, String)> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.name());
        let bundle = self.directory.join(BUNDLES).join(number.to_string());
        make_directory(&bundle)?;
        DirBuilder::new().mode(0o700).create(self.runtime_root(&bundle))?;
        Ok((bundle, name))
    }

    /// The runtime's state of a container. Its name identifies the runtime for a later start.
    pub(super) fn runtime_root(&self, bundle: &Path) -> PathBuf {
        bundle.join(self.kind.program())
    }

    /// A root with mount points for these trees, one for each container, so that it reveals nothing
    /// about other containers.
    pub(super) fn root_for(&self, spec: &ContainerSpec, bundle: &Path) -> io::Result<PathBuf> {
        // gVisor's kernel creates inodes of its own for it.
        let can_share = self.kind.kernel() == Kernel::Gvisor;
        if can_share && spec.trees.is_empty() && spec.places.is_empty() {
            return Ok(self.directory.join(ROOT));
        }
        let root = bundle.join(ROOT);
        // The agent builds these, and they are directories.
        let made = spec.made_trees().map(|place| (place.to_owned(), true));
        let shown = spec.shown_trees().map(|(host, inside)| (inside, host.is_dir()));
        let places = spec.places.iter();
        // The others are created in file systems of the container's own.
        let places = places.filter(|place| !is_program_s(&place.path));
        let places = places.map(|place| (place.path.clone(), place.is_directory));
        build_root(&root, &self.root.skeleton, shown.chain(made).chain(places))?;
        Ok(root)
    }
}

/// Whether a path is on one of the program's own file systems.
fn is_program_s(path: &Path) -> bool {
    ["/work", "/tmp"].iter().any(|place| path.starts_with(place))
}

/// Paths in a bundle at which trees are mounted that the runtime cannot reach otherwise. Each with
/// its host path.
pub(super) fn places_for(trees: &[Tree], bundle: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let directory = bundle.join("trees");
    make_directory(&directory)?;
    let place = |(number, tree): (usize, &Tree)| {
        let name = Path::new("/").join(number.to_string());
        make_place(&directory, &name, tree.host.is_dir())?;
        Ok((tree.host.clone(), directory.join(number.to_string())))
    };
    trees.iter().enumerate().map(place).collect()
}

impl Drop for State {
    fn drop(&mut self) {
        leave(&self.directory);
    }
}

/// IDs for containers, in the name of the process that has them.
pub(crate) fn claim_ids(name: &str) -> io::Result<Ids> {
    let ids = Path::new(STATE_DIRECTORY).join(IDS);
    again_if_gone(|| {
        open_directory(Path::new(STATE_DIRECTORY))?;
        open_directory(&ids)?;
        Ids::sweep(&ids);
        Ids::claim(&ids, name)
    })
}

fn fill(directory: &Path, skeleton: &Skeleton) -> io::Result<()> {
    make_directory(&directory.join(BUNDLES))?;
    make_directory(&directory.join("empty"))?;
    write(&directory.join("agent"), AGENT, 0o755)?;
    build_root(&directory.join(ROOT), skeleton, [].into_iter())
}

/// Creates the root of containers.
fn build_root(
    root: &Path,
    skeleton: &Skeleton,
    places: impl Iterator<Item = (PathBuf, bool)>,
) -> io::Result<()> {
    fs::create_dir(root)?;
    skeleton.write(root)?;
    make_place(root, Path::new(super::bundle::AGENT_INSIDE), false)?;
    for (inside, is_directory) in places {
        make_place(root, &inside, is_directory)?;
    }
    let_all_read(root)?;
    // Runtimes give a mounted file system the mode of the directory below it.
    fs::set_permissions(root.join("tmp"), Permissions::from_mode(0o1777))
}

/// Independent of the umask.
fn let_all_read(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let_all_read(&entry.path())?;
        } else if kind.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}

/// Removes what ended processes left: first their containers, whose agents exit when they notice.
fn sweep() {
    let Ok(entries) = fs::read_dir(STATE_DIRECTORY) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_left = name.to_str().is_some_and(Hierarchy::is_left_by_the_dead);
        if !is_left {
            continue;
        }
        let bundles = fs::read_dir(entry.path().join(BUNDLES)).into_iter().flatten().flatten();
        let note = entry.path().join(RUNTIME);
        bundles.for_each(|bundle| end_container(&bundle.path(), &note));
        let _ = fs::remove_dir_all(entry.path());
    }
    // After their containers are gone.
    Ids::sweep(&Path::new(STATE_DIRECTORY).join(IDS));
}

/// Kills the container of a bundle, if there is one, with the recorded runtime.
fn end_container(bundle: &Path, note: &Path) {
    for kind in Kind::ALL {
        let root = bundle.join(kind.program());
        if !root.exists() {
            continue;
        }
        // If the runtime is not installed any more, its containers are unknown.
        let Some(runtime) = Runtime::noted(*kind, note) else { continue };
        for container in runtime.containers(&root).unwrap_or_default() {
            runtime.delete(&root, &container);
        }
    }
}
