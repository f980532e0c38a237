//! Handles an exec request in init: mounts and places what it brings, starts the program or passes
//! it to a waiting runtime, watches, and reports.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::CapabilitySet;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::{ExecRequest, InitMessage, OverlayMode, Starts};
use sandbox_protocol::notice::Notice;

use super::usage::Baseline;
use super::watch::Reach;
use super::{Init, Prepared, default_size, instance, watch};
use crate::capabilities;
use crate::clock;
use crate::egress_network;
use crate::exec_message::ExecMessage;
use crate::loopback;
use crate::overlay;
use crate::program::{self, Confinement, Program};
use crate::rootfs::{self, DiskSize, Existing};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::streams::Streams;
use crate::stub::Stub;
use crate::syscall::{self, ChildStack, SharedNumber};
use crate::volume_root;

/// Handles the request, until the end of the sandbox.
pub(super) fn handle_exec(
    init: &Init<'_>,
    mut prepared: Prepared,
    stub: Option<Stub>,
    streams: Streams,
    mut message: ExecMessage,
) -> Result<(), StepError> {
    if let Some(stub) = stub {
        // It was confined for requests that do not change the isolation.
        stub.discard();
    }
    let supervisor = init.supervisor.as_fd();
    let descriptors = std::mem::take(&mut message.descriptors);
    let request = message.read()?;
    if let Some(copy) = Pid::from_raw(request.zygote_fork.cast_signed()) {
        resize(init, &request)?;
        if request.loopback {
            loopback::bring_up(init.network_settings).at("bring loopback up")?;
        }
        let before = hand_over(init, None, &request, copy, &streams, &prepared)?;
        return watch_to_the_end(init, &prepared, copy, streams, &before);
    }
    prepare_rootfs(init, &request, descriptors, &mut prepared)?;
    if request.proxy_port != 0 {
        let listener = loopback::listen_on(request.proxy_port).at("listen on loopback")?;
        socket::send(supervisor, &Notice::ProxyListener.encode(), &[listener.as_fd()])
            .at("send the listener of the egress proxy")?;
    }
    if request.egress {
        let ends = egress_network::open().at("configure the network")?;
        for batch in ends.batches() {
            let descriptors: Vec<_> = batch.iter().map(AsFd::as_fd).collect();
            socket::send(supervisor, &Notice::Network.encode(), &descriptors)
                .at("send the sockets of the network")?;
        }
        // The kernel refuses connections until the supervisor has opened its listeners.
        if !is_network_open(supervisor)? {
            return Ok(());
        }
    }
    if request.starts == Starts::Instance {
        drop((streams, message));
        return instance::serve(init, prepared);
    }
    let mut before = Baseline::now(prepared.counters.as_ref(), None);
    let rules = prepared.rules.take();
    let confinement = prepared.confinement(init, streams.of_program(), rules);
    let program = clone_program(supervisor, &request, confinement, &prepared.started)?;
    if request.starts == Starts::Runtime {
        let Some(job) = socket::receive(supervisor).at("wait for a program")? else {
            return Ok(());
        };
        let job = ExecMessage::open(job)?;
        before = hand_over(init, Some(&request), &job.read()?, program, &streams, &prepared)?;
    }
    watch_to_the_end(init, &prepared, program, streams, &before)
}

/// Waits until the listeners of the allowed addresses are open; false if the supervisor is gone.
fn is_network_open(supervisor: BorrowedFd<'_>) -> Result<bool, StepError> {
    let Some(message) = socket::receive(supervisor).at("wait for the network")? else {
        return Ok(false);
    };
    match InitMessage::decode(&message.bytes) {
        Ok(InitMessage::NetworkOpen) => Ok(true),
        _ => Err(Errno::PROTO).at("wait for the network"),
    }
}

/// Watches the stub, which executes the program.
pub(super) fn watch_stub(
    init: &Init<'_>,
    prepared: &Prepared,
    stub: Stub,
    streams: Streams,
    before: &Baseline,
) -> Result<(), StepError> {
    watch_to_the_end(init, prepared, stub.process, streams, before)
}

fn watch_to_the_end(
    init: &Init<'_>,
    prepared: &Prepared,
    program: Pid,
    streams: Streams,
    before: &Baseline,
) -> Result<(), StepError> {
    // Standard input ends when its last writer closes it: that must be the supervisor.
    drop(streams);
    // The only privileged operation left is signalling the program's user.
    capabilities::keep_only(CapabilitySet::KILL).at("drop init's capabilities")?;
    let reach = Reach::of_init(init.config.protections);
    let exit = watch::watch(program, &prepared.signals, &prepared.started, &reach)?;
    let exit = before.subtract(exit, prepared.counters.as_ref());
    socket::send(init.supervisor.as_fd(), &Notice::Exited(exit).encode(), &[])
        .at("report the exit")?;
    // Tearing the sandbox down takes kernel time, so it is deferred until the supervisor closes the
    // socket.
    let _ = socket::receive(init.supervisor.as_fd());
    Ok(())
}

/// Starts the program in a process that shares this process's memory until it execs: nothing is
/// copied, and this process waits meanwhile. `supervisor` receives its notices.
pub(super) fn clone_program(
    supervisor: BorrowedFd<'_>,
    request: &ExecRequest<'_>,
    mut confinement: Confinement<'_>,
    started: &SharedNumber,
) -> Result<Pid, StepError> {
    let program = Program::new(request)?;
    let starting =
        if request.starts == Starts::Runtime { Notice::Confined } else { Notice::Starting }
            .encode();
    let stack = ChildStack::new().at("make a stack for the program's start")?;
    // SAFETY: this process has one thread, and the closure ends in exec or exit.
    let child = unsafe {
        stack.clone_sharing_memory(&mut || {
            let error =
                program::become_program(&program, &mut confinement, started, &starting, supervisor);
            let _ = socket::send(supervisor, &Notice::Failed(error.into()).encode(), &[]);
            syscall::exit_now(127)
        })
    };
    child.at("clone the program")
}

/// Passes the program to the waiting runtime: first its files, then the job on standard input.
fn hand_over(
    init: &Init<'_>,
    warming: Option<&ExecRequest<'_>>,
    job: &ExecRequest<'_>,
    runtime: Pid,
    streams: &Streams,
    prepared: &Prepared,
) -> Result<Baseline, StepError> {
    let alive = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // A fork becomes a child of this process only when its parent has exited.
    if !matches!(waitid(WaitId::Pid(runtime), alive), Ok(None) | Err(Errno::CHILD)) {
        return Err(Errno::SRCH).at("pass the program to the waiting runtime");
    }
    warming.map_or(Ok(()), rootfs::remove_files)?;
    rootfs::write_files(job, Existing::Refuse)?;
    let before = Baseline::now(prepared.counters.as_ref(), Some(runtime));
    prepared.started.get().store(clock::monotonic_nanos(), Ordering::Relaxed);
    let word = job_message(job);
    let mut rest = word.as_slice();
    while !rest.is_empty() {
        let written =
            rustix::io::write(&streams.job, rest).at("pass the program to the waiting runtime")?;
        rest = &rest[written..];
    }
    // Not earlier: what the supervisor writes to standard input from now on is the program's.
    socket::send(init.supervisor.as_fd(), &Notice::Starting.encode(), &[])
        .at("report that the program starts")?;
    Ok(before)
}

/// Encodes a job for a waiting runtime: the length, then zero-terminated fields: the directory, the
/// number of arguments, the arguments, and the environment.
fn job_message(job: &ExecRequest<'_>) -> Vec<u8> {
    let mut body = Vec::with_capacity(512);
    let mut field = |text: &str| {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    };
    field(&program::directory(job));
    field(&job.argv.len().to_string());
    job.argv.iter().chain(&job.env).for_each(|text| field(text));
    let mut message = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    message.append(&mut body);
    message
}

fn resize(init: &Init<'_>, request: &ExecRequest<'_>) -> Result<(), StepError> {
    let size = DiskSize { bytes: request.disk_bytes, inodes: request.disk_inodes };
    if size == default_size(init.config) {
        return Ok(());
    }
    rootfs::resize_writable(size, init.config.protections)
}

/// Applies what depends on the request: sizes, workspace, volumes, files, loopback.
fn prepare_rootfs(
    init: &Init<'_>,
    request: &ExecRequest<'_>,
    descriptors: Vec<OwnedFd>,
    prepared: &mut Prepared,
) -> Result<(), StepError> {
    let has_content = request.workspace.is_some_and(|workspace| workspace.has_content);
    let mut descriptors = descriptors.into_iter();
    let content = if has_content { descriptors.next() } else { None };
    let mut volumes: Vec<OwnedFd> = descriptors.collect();
    let protections = init.config.protections;
    resize(init, request)?;
    if let Some(workspace) = request.workspace {
        // Before the volumes, which may be mounted in it.
        let work = rootfs::mount_workspace(workspace, content, protections)?;
        socket::send(init.supervisor.as_fd(), &Notice::Workspace.encode(), &[work.as_fd()])
            .at("send the workspace")?;
        if let Some(rules) = &mut prepared.rules {
            rules.allow_writing(rootfs::WORK)?;
        }
    }
    if !request.volumes.is_empty() {
        for (number, volume) in request.volumes.iter().enumerate() {
            // While the directory for upper layers is reachable in this mount namespace.
            match (volume.overlay, &prepared.template) {
                (OverlayMode::CopyOnWrite, _) => {
                    overlay::cover(&mut volumes[number], &prepared.upper_layers, number)?;
                }
                (OverlayMode::ReadOnly, Some(template)) if volume.is_directory => {
                    overlay::separate(&mut volumes[number], template, &prepared.upper_layers)?;
                }
                (OverlayMode::ReadOnly | OverlayMode::None, _) => {}
            }
        }
        volume_root::make_for(&request.volumes)?;
        rootfs::mount_volumes(&request.volumes, &volumes)?;
        if let Some(rules) = &mut prepared.rules {
            // The root may have been replaced.
            rules.allow_reading("/")?;
            for volume in request.volumes.iter().filter(|volume| volume.writable) {
                rules.allow_writing(volume.destination)?;
            }
        }
    }
    rustix::process::umask(Mode::empty());
    // A file of the request replaces a saved one.
    let existing = if request.workspace.is_some() { Existing::Replace } else { Existing::Refuse };
    rootfs::write_files(request, existing)?;
    if request.loopback {
        loopback::bring_up(init.network_settings).at("bring loopback up")?;
    }
    Ok(())
}
