//! Bundles for runtimes that take the Open Container Initiative's: a root that is almost empty, with the
//! host's `/usr` in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox::Limits;
use serde_json::{Value, json};

use super::super::process::{Process, words};
use super::{Guest, Peer};

/// runsc's own threads count against the limit on processes.
const RUNSC_PIDS: u32 = 512;

/// Directories of a root that something is mounted on, and where the merged ones point.
const EMPTY: &[&str] = &["usr", "proc", "dev", "tmp", "etc", "sys"];
const MERGED: &[(&str, &str)] = &[("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];

/// A bundle on disk, and the runtime for it.
pub(super) struct Bundle {
    peer: Peer,
    program: PathBuf,
    place: PathBuf,
    expected: &'static str,
    /// A container's name can be used again only when all of it is gone.
    started: AtomicUsize,
}

/// Makes a root file system for a bundle or an image.
pub(super) fn write_root(place: &Path) -> anyhow::Result<()> {
    for name in EMPTY {
        std::fs::create_dir_all(place.join(name))?;
    }
    for (name, target) in MERGED {
        symlink(target, place.join(name))?;
    }
    Ok(())
}

impl Bundle {
    pub(super) fn write(
        bundles: &Path,
        peer: Peer,
        program: &Path,
        guest: &Guest,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(bundles)?;
        // It goes with the directory that all bundles are in.
        let place = tempfile::Builder::new().prefix("bundle").tempdir_in(bundles)?.keep();
        write_root(&place.join("rootfs"))?;
        let config = serde_json::to_string_pretty(&config(peer, guest))?;
        std::fs::write(place.join("config.json"), config)?;
        let (program, started) = (program.to_owned(), AtomicUsize::new(0));
        Ok(Self { peer, program, place, expected: guest.expected, started })
    }

    /// The next container of this bundle.
    pub(super) fn process(&self) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = self.place.file_name().unwrap_or_default().to_string_lossy();
        let id = format!("sandbox-bench-{}-{name}-{number}", std::process::id());
        let (state, bundle) = (self.place.join("state"), self.place.to_string_lossy());
        let (program, state) = (self.program.to_string_lossy(), state.to_string_lossy());
        let mut command = words([&*program, "--root", &*state]);
        if self.peer == Peer::Runsc {
            command.extend(words(["--network=none", "--platform=systrap"]));
        }
        command.extend(words(["run", "--bundle", &*bundle, &*id]));
        let (directory, expected) = (self.place.clone(), self.expected.into());
        Process { commands: vec![command], directory, expected }
    }
}

fn config(peer: Peer, guest: &Guest) -> Value {
    let usual = Limits::run();
    let memory = usual.memory().as_u64();
    let pids = if peer == Peer::Runsc { RUNSC_PIDS } else { usual.pids() };
    let tmpfs = |destination: &str, mode: &str| {
        json!({
            "destination": destination, "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", format!("mode={mode}"), "size=65536k"],
        })
    };
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 65534, "gid": 65534 },
            "args": guest.command,
            "env": ["PATH=/usr/bin:/bin", "HOME=/tmp"],
            "cwd": "/",
            "noNewPrivileges": true,
            "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": 256, "soft": 256 }],
        },
        "root": { "path": "rootfs", "readonly": true },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            tmpfs("/dev", "755"),
            tmpfs("/tmp", "1777"),
            {
                "destination": "/usr", "type": "bind", "source": "/usr",
                "options": ["rbind", "ro", "nosuid", "nodev"],
            },
        ],
        "linux": {
            "namespaces": namespaces,
            "resources": {
                "memory": { "limit": memory, "swap": memory },
                "pids": { "limit": pids },
                "cpu": { "quota": usual.cpu_millis() * 100, "period": 100_000 },
            },
        },
    })
}
