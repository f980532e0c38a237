//! The description of a container, as the Engine has it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};

use super::runtime::Runtime;
use crate::guest::{MADE_INODES, Purpose};

/// Where the agent is inside.
pub(super) const AGENT_INSIDE: &str = "/etc/sandbox-agent";
/// Files that we or the Engine make for each container, and mount.
pub(super) const OWN_FILES: &[&str] =
    &["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];
/// As in the native walls: our own directories must not count against the program.
const OWN_INODES: u64 = 9;
/// Who left a container behind is told by this.
pub(super) const OWNER_LABEL: &str = "run.sandbox.owner";

/// The Engine's limits stand around ours, which are exact. The runtime that starts a container does so inside them, and
/// needs some memory and threads.
const SPARE_MEMORY: i64 = 64 << 20;
const SPARE_PROCESSES: i64 = 64;

/// What the runtime itself looks at in there stays to be seen when the rest of it is hidden.
const MASKED: &[&str] = &["/proc/sys", "/sys"];

/// What a container is made of.
pub(super) struct Description<'a> {
    pub(super) image: &'a str,
    pub(super) purpose: &'a Purpose,
    pub(super) agent: &'a Path,
    /// Holds lists of users, groups and hosts.
    pub(super) lists: &'a Path,
    /// Host paths shown at the same place.
    pub(super) shown: &'a [PathBuf],
    /// The program's user and group.
    pub(super) user: u32,
    pub(super) runtime: &'a Runtime,
    pub(super) owner: &'a str,
    /// The system-call filter that stands around the agent's own.
    pub(super) filter: &'a str,
}

impl Description<'_> {
    pub(super) fn write(&self) -> ContainerCreateBody {
        let text = |text: &str| Some(text.to_owned());
        let agent = if self.runtime.kernel.agent_is_root() { 0 } else { self.user };
        ContainerCreateBody {
            image: text(self.image),
            hostname: text("sandbox"),
            user: Some(format!("{agent}:{agent}")),
            entrypoint: Some(vec![AGENT_INSIDE.to_owned()]),
            // What an image says is replaced, as its entry point is.
            cmd: Some(Vec::new()),
            env: Some(vec!["PATH=/usr/bin:/bin".to_owned()]),
            working_dir: text("/"),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(false),
            open_stdin: Some(true),
            // When we are gone the agent's input ends, and the container with it.
            stdin_once: Some(true),
            network_disabled: Some(true),
            labels: Some(HashMap::from([(OWNER_LABEL.to_owned(), self.owner.to_owned())])),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        }
    }

    fn host_config(&self) -> HostConfig {
        let purpose = self.purpose;
        let Runtime { name, kernel } = self.runtime;
        let limits = kernel.limits(purpose);
        let number = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
        let memory = number(limits.memory_bytes).map(|bytes| bytes.saturating_add(SPARE_MEMORY));
        let none = |name: &&str| ResourcesUlimits {
            name: Some((*name).to_owned()),
            soft: Some(0),
            hard: Some(0),
        };
        let list = |items: &[&str]| Some(items.iter().map(|&item| item.to_owned()).collect());
        let filter = format!("seccomp={}", self.filter);
        HostConfig {
            network_mode: Some("none".to_owned()),
            memory,
            // The same: no swap besides.
            memory_swap: memory,
            nano_cpus: Some(i64::from(purpose.cpu_millis) * 1_000_000),
            pids_limit: number(limits.pids).map(|pids| pids.saturating_add(SPARE_PROCESSES)),
            runtime: name.clone(),
            ulimits: Some(kernel.early_rlimits().iter().map(none).collect()),
            readonly_rootfs: Some(true),
            tmpfs: Some(self.file_systems()),
            mounts: Some(self.mounts()),
            cap_drop: list(&["ALL"]),
            cap_add: list(kernel.rights_of_agent()),
            security_opt: Some(vec!["no-new-privileges".to_owned(), filter]),
            masked_paths: list(MASKED),
            readonly_paths: list(&[]),
            // The one that there is below `tmpfs` has the size of the disk limit.
            ipc_mode: Some("none".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            // The agent is process 1.
            init: Some(false),
            // Also if we are gone by then.
            auto_remove: Some(true),
            ..HostConfig::default()
        }
    }

    fn file_systems(&self) -> HashMap<String, String> {
        let (bytes, inodes) = (self.purpose.disk_bytes, self.purpose.inodes + OWN_INODES);
        let sized = format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={inodes}");
        let owned = format!("{sized},mode=755,uid={0},gid={0}", self.user);
        let shared = format!("{sized},mode=1777");
        let places = [("/work", owned), ("/tmp", shared.clone()), ("/dev/shm", shared)];
        let places = places.into_iter().map(|(place, options)| (place.to_owned(), options));
        let more_files = inodes + MADE_INODES;
        let made = format!(
            "rw,exec,nosuid,nodev,size={bytes},nr_inodes={more_files},mode=755,uid={0},gid={0}",
            self.user
        );
        let made_trees = self.purpose.made_trees();
        let made = made_trees.map(|place| (place.display().to_string(), made.clone()));
        // What is there until a volume is put over it.
        let covered = self.purpose.places.iter().filter(|place| place.is_directory);
        let covered = covered.map(|place| {
            (place.path.display().to_string(), "rw,noexec,nosuid,nodev,size=4k,mode=755".to_owned())
        });
        places.chain(made).chain(covered).collect()
    }

    fn mounts(&self) -> Vec<Mount> {
        let shown = |host: &Path, inside: &Path| Mount {
            typ: Some(MountType::BIND),
            source: Some(host.display().to_string()),
            target: Some(inside.display().to_string()),
            read_only: Some(true),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..MountBindOptions::default()
            }),
            ..Mount::default()
        };
        let same = self.shown.iter().map(|path| shown(path, path));
        let trees = self.purpose.shown_trees().map(|(host, inside)| shown(host, &inside));
        // What an image has there, or the Engine puts there, is for other users and another network.
        let lists = ["passwd", "group", "hosts"];
        let lists = lists.map(|name| shown(&self.lists.join(name), &Path::new("/etc").join(name)));
        let agent = shown(self.agent, Path::new(AGENT_INSIDE));
        // A file is mounted onto a file, of which any will do.
        let covered = self.purpose.places.iter().filter(|place| !place.is_directory);
        let covered = covered.map(|place| shown(self.agent, &place.path));
        same.chain(trees).chain(lists).chain([agent]).chain(covered).collect()
    }
}
