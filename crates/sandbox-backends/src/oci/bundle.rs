//! The OCI runtime configuration of a container.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::kind::Kind;
use crate::container::{ContainerSpec, MADE_INODES, USER};

/// The agent's path inside.
pub(super) const AGENT_INSIDE: &str = "/etc/sandbox-agent";
/// As in the native backend: directories that are created before the program do not count against
/// it.
const OWN_INODES: u64 = 9;

/// The program's user outside, in a container with these IDs.
pub(super) fn outside(first_id: u32) -> u32 {
    first_id + 1
}

/// Everything a bundle is created from.
pub(super) struct BundleConfig<'a> {
    pub(super) spec: &'a ContainerSpec,
    /// Its trees: the paths at which the runtime finds them, and their destinations.
    pub(super) trees: &'a [(PathBuf, PathBuf)],
    pub(super) root: &'a Path,
    pub(super) agent: &'a Path,
    /// Host paths that are mounted at the same path.
    pub(super) shown: &'a [PathBuf],
    /// The first of its IDs outside.
    pub(super) first_id: u32,
    /// Its network namespace, if it must not have a loopback interface.
    pub(super) network: Option<&'a Path>,
    /// Its cgroup path, in the runtime's syntax.
    pub(super) cgroup: &'a str,
    /// The system-call filter of the container, which also applies to the agent.
    pub(super) seccomp: &'a Value,
    pub(super) kind: Kind,
}

impl BundleConfig<'_> {
    /// The content of `config.json`.
    pub(super) fn write(&self) -> Value {
        let ids = |inside: u32, outside: u32| json!({"containerID": inside, "hostID": outside, "size": 1});
        let mapping = json!([
            ids(0, self.first_id),
            ids(USER, outside(self.first_id)),
            ids(65_534, self.first_id + 2),
        ]);
        let kernel = self.kind.kernel();
        let user = if self.spec.agent_is_root { 0 } else { USER };
        let rights = self.spec.rights_of_agent();
        let rlimits = kernel.early_rlimits().iter().map(
            |name| json!({"type": format!("RLIMIT_{}", name.to_uppercase()), "soft": 0, "hard": 0}),
        );
        let rlimits: Vec<Value> = rlimits.collect();
        let kinds = ["user", "mount", "pid", "ipc", "uts", "cgroup"];
        let mut namespaces: Vec<Value> = kinds.iter().map(|kind| json!({"type": kind})).collect();
        // In a namespace that it creates itself, the runtime sets the loopback interface up.
        namespaces.push(match self.network {
            Some(path) => json!({"type": "network", "path": path}),
            None => json!({"type": "network"}),
        });
        json!({
            "ociVersion": "1.0.2",
            "hostname": "sandbox",
            "root": {"path": self.root, "readonly": true},
            "process": {
                "terminal": false,
                "user": {"uid": user, "gid": user},
                "args": [AGENT_INSIDE],
                "env": [],
                "cwd": "/",
                "noNewPrivileges": true,
                "rlimits": rlimits,
                "capabilities": {
                    "bounding": rights, "effective": rights, "permitted": rights,
                    "inheritable": [], "ambient": [],
                },
            },
            "mounts": self.mounts(),
            "linux": {
                "namespaces": namespaces,
                "uidMappings": mapping,
                "gidMappings": mapping,
                "cgroupsPath": self.cgroup,
                "rootfsPropagation": "private",
                "seccomp": self.seccomp,
                "resources": {"devices": [{"allow": false, "access": "rwm"}]},
                "maskedPaths": [
                    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
                    "/proc/sysrq-trigger", "/proc/kallsyms", "/proc/kmsg", "/proc/config.gz",
                ],
                "readonlyPaths": ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
            },
        })
    }

    fn mounts(&self) -> Vec<Value> {
        let (bytes, inodes) = (self.spec.disk_bytes, self.spec.inodes + OWN_INODES);
        let (size, files) = (format!("size={bytes}"), format!("nr_inodes={inodes}"));
        let tmpfs = |place: &str, more: &[&str]| {
            let options = [&["nosuid", "nodev", &*size, &*files], more].concat();
            json!({"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options})
        };
        let shown = |host: &Path, inside: &Path| {
            json!({
                "destination": inside, "type": "bind", "source": host,
                "options": ["rbind", "ro", "nosuid", "nodev", "private"],
            })
        };
        let mut mounts = vec![
            json!({
                "destination": "/proc", "type": "proc", "source": "proc",
                "options": ["nosuid", "noexec", "nodev", "subset=pid", "hidepid=invisible"],
            }),
            json!({
                "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
                "options": ["nosuid", "strictatime", "mode=755", "size=64k"],
            }),
            json!({
                "destination": "/dev/pts", "type": "devpts", "source": "devpts",
                "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "max=16"],
            }),
            tmpfs("/dev/shm", &["mode=1777"]),
            tmpfs("/tmp", &["mode=1777"]),
        ];
        mounts.extend(self.shown.iter().map(|path| shown(path, path)));
        mounts.extend(self.trees.iter().map(|(host, inside)| shown(host, inside)));
        mounts.push(shown(self.agent, Path::new(AGENT_INSIDE)));
        let (user, group) = (format!("uid={USER}"), format!("gid={USER}"));
        let owned = ["mode=755", &user, &group];
        let more_files = format!("nr_inodes={}", inodes + MADE_INODES);
        for place in self.spec.made_trees() {
            let options = [&["nosuid", "nodev", &*size, &*more_files][..], &owned].concat();
            mounts.push(json!({"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options}));
        }
        mounts.push(tmpfs("/work", &owned));
        // A placeholder until a volume is mounted over it. A file is mounted over a file; any will
        // do.
        mounts.extend(self.spec.places.iter().map(|place| {
            if place.is_directory {
                tmpfs(&place.path.to_string_lossy(), &["mode=755", "noexec"])
            } else {
                shown(self.agent, &place.path)
            }
        }));
        mounts
    }
}
