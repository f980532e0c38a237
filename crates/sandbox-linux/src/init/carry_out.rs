//! What init does on an order: places what the order brings, starts the program or tells the runtime that
//! waits for one, watches, and reports.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::thread::CapabilitySet;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::{ExecRequest, InitMessage, OverlayMode};
use sandbox_protocol::notice::Notice;

use super::figures::Before;
use super::{Init, Prepared, default_size, watch};
use crate::capabilities;
use crate::clock;
use crate::exec_message::ExecMessage;
use crate::loopback;
use crate::overlay;
use crate::own_root;
use crate::place::{self, DiskSize};
use crate::program::{self, Program};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::streams::Streams;
use crate::stub::Stub;
use crate::syscall::{self, ChildStack};
use crate::way_out;

/// Carries out the order, to the end of the sandbox.
pub(super) fn carry_out(
    init: &Init<'_>,
    mut prepared: Prepared,
    stub: Option<Stub>,
    streams: Streams,
    mut message: ExecMessage,
) -> Result<(), StepError> {
    if let Some(stub) = stub {
        // It was made for orders that leave the walls as they are.
        stub.discard();
    }
    let supervisor = init.supervisor.as_fd();
    let descriptors = std::mem::take(&mut message.descriptors);
    let order = message.read()?;
    if let Some(copy) = Pid::from_raw(order.zygote_fork.cast_signed()) {
        resize(init, &order)?;
        if order.loopback {
            loopback::bring_up(init.network_settings).at("bring loopback up")?;
        }
        let before = hand_over(init, None, &order, copy, &streams, &prepared)?;
        return watch_to_the_end(init, &prepared, copy, streams, &before);
    }
    place(init, &order, descriptors, &mut prepared)?;
    if order.proxy_port != 0 {
        let gate = loopback::listen_on(order.proxy_port).at("listen on loopback")?;
        socket::send(supervisor, &Notice::ProxyListener.encode(), &[gate.as_fd()])
            .at("hand the gate over")?;
    }
    if order.egress {
        let ends = way_out::open().at("make a network with every address")?;
        for batch in ends.batches() {
            let descriptors: Vec<_> = batch.iter().map(AsFd::as_fd).collect();
            socket::send(supervisor, &Notice::Network.encode(), &descriptors)
                .at("hand the network over")?;
        }
        // The kernel refuses what a program connects to before the supervisor listens there.
        if !is_network_open(supervisor)? {
            return Ok(());
        }
    }
    let mut before = Before::now(prepared.counters.as_ref(), None);
    let program = clone_program(init, &order, &streams, &mut prepared)?;
    if order.awaits_program {
        let Some(job) = socket::receive(supervisor).at("wait for a program")? else {
            return Ok(());
        };
        let job = ExecMessage::open(job)?;
        before = hand_over(init, Some(&order), &job.read()?, program, &streams, &prepared)?;
    }
    watch_to_the_end(init, &prepared, program, streams, &before)
}

/// Waits until the supervisor listens at the addresses that are allowed; false if it is gone instead.
fn is_network_open(supervisor: BorrowedFd<'_>) -> Result<bool, StepError> {
    let Some(message) = socket::receive(supervisor).at("wait for the network")? else {
        return Ok(false);
    };
    match InitMessage::decode(&message.bytes) {
        Ok(InitMessage::NetworkOpen) => Ok(true),
        _ => Err(Errno::PROTO).at("wait for the network"),
    }
}

/// Watches the program that the stub has become or is about to.
pub(super) fn see_through(
    init: &Init<'_>,
    prepared: &Prepared,
    stub: Stub,
    streams: Streams,
    before: &Before,
) -> Result<(), StepError> {
    watch_to_the_end(init, prepared, stub.process, streams, before)
}

fn watch_to_the_end(
    init: &Init<'_>,
    prepared: &Prepared,
    program: Pid,
    streams: Streams,
    before: &Before,
) -> Result<(), StepError> {
    // Standard input ends when its last writer is gone: the supervisor is to be the only one.
    drop(streams);
    // Signalling the program's other id is all that is left to do.
    capabilities::keep_only(CapabilitySet::KILL).at("drop init's capabilities")?;
    let exit = watch::watch(program, &prepared.signals, &prepared.started, init.config.walls);
    let exit = before.subtract(exit, prepared.counters.as_ref());
    socket::send(init.supervisor.as_fd(), &Notice::Exited(exit).encode(), &[])
        .at("tell the end")?;
    // Taking a sandbox down is work for the kernel, which then takes it from whoever is next: it waits
    // until the supervisor finds the time.
    let _ = socket::receive(init.supervisor.as_fd());
    Ok(())
}

/// Starts the program in a process of its own that shares our memory until it execs: nothing has to be
/// copied, and this process waits meanwhile.
fn clone_program(
    init: &Init<'_>,
    order: &ExecRequest<'_>,
    streams: &Streams,
    prepared: &mut Prepared,
) -> Result<Pid, StepError> {
    let supervisor = init.supervisor.as_fd();
    let rules = prepared.rules.take();
    let program = Program::new(order)?;
    let starting = if order.awaits_program { Notice::Confined } else { Notice::Starting }.encode();
    let mut confinement = prepared.confinement(init, streams, rules);
    let stack = ChildStack::new().at("make a stack for the program's start")?;
    // SAFETY: this process has one thread, and the closure ends in exec or exit.
    let child = unsafe {
        stack.clone_sharing_memory(&mut || {
            let error = program::become_program(
                &program,
                &mut confinement,
                &prepared.started,
                &starting,
                supervisor,
            );
            let _ = socket::send(supervisor, &Notice::Failed(error.into()).encode(), &[]);
            syscall::exit_now(127)
        })
    };
    child.at("clone the program")
}

/// Gives the program to the runtime that waits for it: its files first, then the word on its standard
/// input.
fn hand_over(
    init: &Init<'_>,
    warming: Option<&ExecRequest<'_>>,
    job: &ExecRequest<'_>,
    runtime: Pid,
    streams: &Streams,
    prepared: &Prepared,
) -> Result<Before, StepError> {
    let alive = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // A copy may still be on its way from whoever made it to this process, its parent from then on.
    if !matches!(waitid(WaitId::Pid(runtime), alive), Ok(None) | Err(Errno::CHILD)) {
        return Err(Errno::SRCH).at("reach the runtime that waited");
    }
    warming.map_or(Ok(()), place::remove_files)?;
    place::write_files(job)?;
    let before = Before::now(prepared.counters.as_ref(), Some(runtime));
    prepared.started.get().store(clock::monotonic_nanos(), Ordering::Relaxed);
    let word = job_message(job);
    let mut rest = word.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(&streams.job, rest).at("reach the runtime that waited")?;
        rest = &rest[written..];
    }
    // Not before: what the supervisor then writes to standard input is the program's.
    socket::send(init.supervisor.as_fd(), &Notice::Starting.encode(), &[])
        .at("say that the program starts")?;
    Ok(before)
}

/// What a waiting runtime reads: its length, then fields that end in a zero byte: the directory to be
/// in, how many arguments there are, the arguments, and the environment.
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

fn resize(init: &Init<'_>, order: &ExecRequest<'_>) -> Result<(), StepError> {
    let size = DiskSize { bytes: order.disk_bytes, inodes: order.disk_inodes };
    if size == default_size(init.config) {
        return Ok(());
    }
    place::resize_writable(size, init.config.walls)
}

/// What depends on the order: sizes, workspace, volumes, files, loopback.
fn place(
    init: &Init<'_>,
    order: &ExecRequest<'_>,
    descriptors: Vec<OwnedFd>,
    prepared: &mut Prepared,
) -> Result<(), StepError> {
    let has_content = order.workspace.is_some_and(|workspace| workspace.has_content);
    let mut descriptors = descriptors.into_iter();
    let content = if has_content { descriptors.next() } else { None };
    let mut volumes: Vec<OwnedFd> = descriptors.collect();
    let walls = init.config.walls;
    resize(init, order)?;
    if let Some(workspace) = order.workspace {
        // Before the volumes, which may lie in it.
        let work = place::mount_workspace(workspace, content, walls)?;
        socket::send(init.supervisor.as_fd(), &Notice::Workspace.encode(), &[work.as_fd()])
            .at("hand the workspace over")?;
        if let Some(rules) = &mut prepared.rules {
            rules.allow_writing(place::WORK)?;
        }
    }
    if !order.volumes.is_empty() {
        for (number, volume) in order.volumes.iter().enumerate() {
            // While the room for copies is still part of this mount namespace.
            match (volume.overlay, &prepared.template) {
                (OverlayMode::CopyOnWrite, _) => {
                    overlay::cover(&mut volumes[number], &prepared.copies, number)?;
                }
                (OverlayMode::ReadOnly, Some(template)) if volume.is_directory => {
                    overlay::separate(&mut volumes[number], template, &prepared.copies)?;
                }
                (OverlayMode::ReadOnly | OverlayMode::None, _) => {}
            }
        }
        own_root::make_for(&order.volumes)?;
        place::mount_volumes(&order.volumes, &volumes)?;
        if let Some(rules) = &mut prepared.rules {
            // The root may be another one now.
            rules.allow_reading("/")?;
            for volume in order.volumes.iter().filter(|volume| volume.writable) {
                rules.allow_writing(volume.destination)?;
            }
        }
    }
    rustix::process::umask(Mode::empty());
    place::write_files(order)?;
    if order.loopback {
        loopback::bring_up(init.network_settings).at("bring loopback up")?;
    }
    Ok(())
}
