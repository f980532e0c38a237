//! Translates a plan into an exec request for a slot.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandbox_core::{
    Artefacts, BackendError, InputFile, NetworkPolicy, ProcessSpec, Protection, StagePlan, Start,
    Tree, Volume, VolumeAccess, with_causes,
};
use sandbox_linux::cgroup::OomWatch;
use sandbox_linux::seccomp::Notifications;
use sandbox_linux::{LaunchError, StepError, Zygote, rlimits};
use sandbox_protocol::exec::{ExecFile, ExecRequest, OverlayMode, Starts, VolumeMount};
use sandbox_protocol::launcher::{SymlinkPolicy, VolumeOwner};

use super::host::Host;
use super::pool::Lease;
use super::slots::{ReadySlot, SlotFactory, SupervisionHandles};
use super::stdin::Feed;
use super::streams::Streams;
use crate::error::failed;
use crate::workspace;

/// A slot that received its exec request.
pub(crate) struct Running<'a> {
    pub(crate) slot: Lease<'a>,
    pub(crate) streams: Streams,
    /// Standard input that must not be sent to a waiting runtime before its program.
    pub(crate) feed: Option<Feed>,
    /// Whether the program starts immediately, without a `Starting` notice.
    pub(crate) has_begun: bool,
    /// Bytes that the program's process writes before it execs: the input files.
    pub(crate) placed: u64,
    pub(crate) oom: Option<OomWatch>,
    pub(crate) denied_calls: Option<Notifications>,
}

/// Sets the limits, attaches to the output and sends the exec request.
pub(crate) fn send<'a>(
    host: &Host,
    slot_factory: &SlotFactory,
    mut slot: Lease<'a>,
    plan: &StagePlan,
) -> Result<Running<'a>, BackendError> {
    set_limits(host, &slot, plan)?;
    let SupervisionHandles { input, pipes, oom, denied_calls } = slot.take_handles();
    let mut feed = input.prepare(&plan.process.stdin)?;
    let streams =
        Streams::listen(pipes).map_err(|error| failed("watch the program's output", error))?;
    let env = environment(&plan.process);
    let mut request = exec_request(host, plan, &env);
    if slot.is_loaded {
        request.files = plan.sandbox.files.iter().map(exec_file).collect();
    }
    let sent = if slot.start == Start::Warm {
        // Its volumes are mounted already, and its limits are set.
        request.zygote_fork = slot.forked_pid;
        slot.slot.send_job(&request).map(|()| false)
    } else {
        send_with_mounts(host, slot_factory, &slot, plan, request)?
    };
    let has_begun = sent.map_err(|error| failed("start the sandbox", error))?;
    let placed = plan.sandbox.all_files().map(|file| file.contents.len() as u64).sum();
    if slot.start != Start::Warm {
        feed.take().map_or(Ok(()), Feed::begin)?;
    }
    let placed = if has_begun { placed } else { 0 };
    Ok(Running { slot, streams, feed, has_begun, placed, oom, denied_calls })
}

/// Sends the request with the workspace and the mounts of the sandbox.
fn send_with_mounts(
    host: &Host,
    slot_factory: &SlotFactory,
    slot: &ReadySlot,
    plan: &StagePlan,
    mut request: ExecRequest<'_>,
) -> Result<Result<bool, StepError>, BackendError> {
    let mut mounts = open_trees(host, slot_factory, &plan.sandbox.trees, slot.slot.owner)?;
    mounts.extend(open_volumes(host, slot_factory, &plan.sandbox.volumes, slot.slot.owner)?);
    request.workspace = workspace::mount_of(plan)?;
    let content = plan.sandbox.workspace.as_ref().and_then(|workspace| workspace.content.as_ref());
    Ok(slot.slot.send(&request, content.map(AsFd::as_fd), &mounts))
}

/// Makes a slot an instance. The plan's process is not started.
pub(crate) fn send_instance(
    host: &Host,
    slot_factory: &SlotFactory,
    slot: &ReadySlot,
    plan: &StagePlan,
) -> Result<(), BackendError> {
    set_limits(host, slot, plan)?;
    let request = ExecRequest { starts: Starts::Instance, ..exec_request(host, plan, &[]) };
    let sent = send_with_mounts(host, slot_factory, slot, plan, request)?;
    sent.map(drop).map_err(|error| failed("start the sandbox", error))
}

/// The request for a process of an instance: what it brings besides its sandbox.
pub(crate) fn of_process<'a>(
    host: &Host,
    plan: &'a StagePlan,
    process: &'a ProcessSpec,
    env: &'a [String],
) -> ExecRequest<'a> {
    let of_plan = exec_request(host, plan, env);
    ExecRequest {
        argv: process.command.iter().map(String::as_str).collect(),
        directory: &process.directory,
        env: of_plan.env,
        rlimits: of_plan.rlimits,
        cpu_mask: of_plan.cpu_mask,
        ..ExecRequest::default()
    }
}

fn set_limits(host: &Host, slot: &ReadySlot, plan: &StagePlan) -> Result<(), BackendError> {
    let limits = host.cgroup_limits(&plan.sandbox.limits);
    if limits == slot.limits {
        return Ok(());
    }
    let set = slot.slot.cgroup.set_limits(&limits);
    set.map_err(|error| failed("set the limits of the sandbox", error))
}

/// Starts a runtime that waits for a program.
pub(crate) fn start_waiting(
    host: &Host,
    slot_factory: &SlotFactory,
    ready: &ReadySlot,
    plan: &StagePlan,
) -> Result<(), BackendError> {
    let mounts = open_trees(host, slot_factory, &plan.sandbox.trees, ready.slot.owner)?;
    let env = environment(&plan.process);
    let request = ExecRequest { starts: Starts::Runtime, ..exec_request(host, plan, &env) };
    let sent = ready.slot.send(&request, None, &mounts);
    sent.map(|_| ()).map_err(|error| failed("start the runtime", error))
}

/// Places files in a slot before its program is known.
pub(crate) fn load(ready: &ReadySlot, artefacts: &Artefacts) -> Result<(), LaunchError> {
    let files = artefacts.files.iter().map(exec_file).collect();
    ready.slot.place(&ExecRequest { files, ..ExecRequest::default() })
}

/// Starts a zygote.
pub(crate) fn start_zygote(
    host: &Host,
    slot_factory: &SlotFactory,
    plan: &StagePlan,
    timeout: Duration,
) -> Result<Zygote, LaunchError> {
    let env = environment(&plan.process);
    slot_factory.start_zygote(&exec_request(host, plan, &env), timeout)
}

pub(crate) fn environment(process: &ProcessSpec) -> Vec<String> {
    process.env.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn exec_request<'a>(host: &Host, plan: &'a StagePlan, env: &'a [String]) -> ExecRequest<'a> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let rlimits = if host.has(Protection::Rlimits) {
        let largest_file = workspace::largest_file(plan);
        let open_files = host.has(Protection::OpenFiles);
        rlimits::encode(
            &plan.sandbox.limits,
            largest_file,
            host.shared_rlimits(&plan.sandbox.limits),
            open_files,
        )
    } else {
        Vec::new()
    };
    let has_network = host.has(Protection::NetNamespace);
    let wants_loopback =
        plan.sandbox.network != NetworkPolicy::None || plan.sandbox.egress_proxy.is_some();
    ExecRequest {
        argv: plan.process.command.iter().map(String::as_str).collect(),
        env: env.iter().map(String::as_str).collect(),
        directory: &plan.process.directory,
        files: plan.sandbox.all_files().map(exec_file).collect(),
        disk_bytes: plan.sandbox.limits.disk().as_u64(),
        disk_inodes: plan.sandbox.limits.inodes(),
        rlimits,
        cpu_mask: host.cores_for(&plan.sandbox.limits, turn),
        loopback: wants_loopback && has_network,
        // Without a network namespace the proxy would be reachable on the host's loopback.
        proxy_port: plan
            .sandbox
            .egress_proxy
            .as_ref()
            .filter(|_| has_network)
            .map_or(0, |egress_proxy| egress_proxy.port),
        egress: plan.sandbox.network == NetworkPolicy::Allowlist && has_network,
        volumes: shown(plan),
        workspace: None,
        starts: Starts::Program,
        zygote_fork: 0,
    }
}

fn exec_file(file: &InputFile) -> ExecFile<'_> {
    ExecFile { path: file.path.as_str(), contents: &file.contents, executable: file.executable }
}

/// The mounts, in the order in which they were opened.
fn shown(plan: &StagePlan) -> Vec<VolumeMount<'_>> {
    let trees = plan.sandbox.trees.iter().map(|tree| VolumeMount {
        destination: tree.inside.to_str().unwrap_or_default(),
        is_directory: tree.host.is_dir(),
        writable: tree.copy_on_write,
        overlay: if tree.copy_on_write { OverlayMode::CopyOnWrite } else { OverlayMode::ReadOnly },
    });
    let volumes = plan.sandbox.volumes.iter().map(|volume| VolumeMount {
        destination: volume.destination().to_str().unwrap_or_default(),
        is_directory: volume.host().is_dir(),
        writable: volume.access() == VolumeAccess::ReadWrite,
        overlay: OverlayMode::None,
    });
    trees.chain(volumes).collect()
}

fn open_trees(
    host: &Host,
    slot_factory: &SlotFactory,
    trees: &[Tree],
    owner: u32,
) -> Result<Vec<OwnedFd>, BackendError> {
    trees
        .iter()
        .map(|tree| {
            if tree.inside.to_str().is_none() {
                return Err(failed("show a toolchain", "its path is not plain text".to_owned()));
            }
            // Copying a file up needs an owner that is mapped inside, and the program can read a
            // private toolchain only as its owner.
            let mapped = tree.copy_on_write || is_for_its_owner(&tree.host);
            let mapping = if mapped { mapping(host, &tree.host, owner) } else { None };
            slot_factory
                .open_volume(&tree.host, SymlinkPolicy::Follow, false, mapping)
                .map_err(|error| failed(&format!("show {}", tree.host.display()), error))
        })
        .collect()
}

/// Whether a toolchain is readable by its owner only.
fn is_for_its_owner(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o005 != 0o005)
}

/// Maps the owner of a host directory to the program's user.
fn mapping(host: &Host, path: &Path, owner: u32) -> Option<VolumeOwner> {
    let on_host = std::fs::metadata(path).ok().filter(|_| host.has_own_ids)?;
    Some(VolumeOwner { user: on_host.uid(), group: on_host.gid(), program: owner })
}

fn open_volumes(
    host: &Host,
    slot_factory: &SlotFactory,
    volumes: &[Volume],
    owner: u32,
) -> Result<Vec<OwnedFd>, BackendError> {
    volumes
        .iter()
        .map(|volume| {
            if volume.destination().to_str().is_none() {
                return Err(BackendError::Refused("a volume's place is not plain text".into()));
            }
            let writable = volume.access() == VolumeAccess::ReadWrite;
            let mapping = mapping(host, volume.host(), owner);
            let opened =
                slot_factory.open_volume(volume.host(), SymlinkPolicy::Refuse, writable, mapping);
            opened.map_err(|error| {
                let chain = with_causes(&error);
                BackendError::Refused(format!("the volume {}: {chain}", volume.host().display()))
            })
        })
        .collect()
}
