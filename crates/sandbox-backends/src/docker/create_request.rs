//! The Engine API's request to create a container.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};

use super::runtime::Runtime;
use crate::container::{ContainerSpec, MADE_INODES};

/// The agent's path inside.
pub(super) const AGENT_INSIDE: &str = "/etc/sandbox-agent";
/// Files that are created and mounted for each container, by this process or the Engine.
pub(super) const OWN_FILES: &[&str] =
    &["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];
/// As in the native backend: directories that are created before the program do not count against
/// it.
const OWN_INODES: u64 = 9;
/// The label that identifies the owner of a container.
pub(super) const OWNER_LABEL: &str = "run.sandbox.owner";

/// The Engine's limits are looser than those of this process's cgroup, which are exact: the runtime
/// starts a container inside them and needs memory and threads.
const SPARE_MEMORY: i64 = 64 << 20;
const SPARE_PROCESSES: i64 = 64;

/// Files in `/proc` that the runtime reads inside the container, so they cannot be hidden.
const MASKED: &[&str] = &["/proc/sys", "/sys"];

/// Everything a container is created from.
pub(super) struct CreateRequest<'a> {
    pub(super) image: &'a str,
    pub(super) spec: &'a ContainerSpec,
    pub(super) agent: &'a Path,
    /// The directory with the lists of users, groups and hosts.
    pub(super) lists: &'a Path,
    /// Host paths that are mounted at the same path.
    pub(super) shown: &'a [PathBuf],
    /// The program's user and group.
    pub(super) user: u32,
    pub(super) runtime: &'a Runtime,
    pub(super) owner: &'a str,
    /// The system-call filter of the container, in addition to the agent's own.
    pub(super) filter: &'a str,
}

impl CreateRequest<'_> {
    pub(super) fn write(&self) -> ContainerCreateBody {
        let text = |text: &str| Some(text.to_owned());
        let agent = if self.spec.agent_is_root { 0 } else { self.user };
        ContainerCreateBody {
            image: text(self.image),
            hostname: text("sandbox"),
            user: Some(format!("{agent}:{agent}")),
            entrypoint: Some(vec![AGENT_INSIDE.to_owned()]),
            // Replaces what the image defines, like its entry point.
            cmd: Some(Vec::new()),
            env: Some(vec!["PATH=/usr/bin:/bin".to_owned()]),
            working_dir: text("/"),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(false),
            open_stdin: Some(true),
            // When this process is gone, the agent's input ends, and the container with it.
            stdin_once: Some(true),
            network_disabled: Some(true),
            labels: Some(HashMap::from([(OWNER_LABEL.to_owned(), self.owner.to_owned())])),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        }
    }

    fn host_config(&self) -> HostConfig {
        let spec = self.spec;
        let Runtime { name, kernel } = self.runtime;
        let limits = kernel.limits(spec);
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
            // The same value: no additional swap.
            memory_swap: memory,
            nano_cpus: Some(i64::from(spec.cpu_millis) * 1_000_000),
            pids_limit: number(limits.pids).map(|pids| pids.saturating_add(SPARE_PROCESSES)),
            runtime: name.clone(),
            ulimits: Some(kernel.early_rlimits().iter().map(none).collect()),
            readonly_rootfs: Some(true),
            tmpfs: Some(self.file_systems()),
            mounts: Some(self.mounts()),
            cap_drop: list(&["ALL"]),
            cap_add: list(spec.rights_of_agent()),
            security_opt: Some(vec!["no-new-privileges".to_owned(), filter]),
            masked_paths: list(MASKED),
            readonly_paths: list(&[]),
            // A later mount below `tmpfs` applies the disk limit.
            ipc_mode: Some("none".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            // The agent is process 1.
            init: Some(false),
            // Even if this process is gone by then.
            auto_remove: Some(true),
            ..HostConfig::default()
        }
    }

    fn file_systems(&self) -> HashMap<String, String> {
        let (bytes, inodes) = (self.spec.disk_bytes, self.spec.inodes + OWN_INODES);
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
        let made_trees = self.spec.made_trees();
        let made = made_trees.map(|place| (place.display().to_string(), made.clone()));
        // A placeholder until a volume is mounted over it.
        let covered = self.spec.places.iter().filter(|place| place.is_directory);
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
        let trees = self.spec.shown_trees().map(|(host, inside)| shown(host, &inside));
        // An image's or the Engine's files are for other users and another network.
        let lists = ["passwd", "group", "hosts"];
        let lists = lists.map(|name| shown(&self.lists.join(name), &Path::new("/etc").join(name)));
        let agent = shown(self.agent, Path::new(AGENT_INSIDE));
        // A file is mounted over a file; any will do.
        let covered = self.spec.places.iter().filter(|place| !place.is_directory);
        let covered = covered.map(|place| shown(self.agent, &place.path));
        same.chain(trees).chain(lists).chain([agent]).chain(covered).collect()
    }
}
