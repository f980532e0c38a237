//! A zygote: a runtime that is started once and forked for each sandbox.
//!
//! The launcher starts it in the template's mount namespace, preloaded with sandbox-zygote, which
//! waits for requests where the runtime calls `fork`. A zygote never runs a program: a fork is
//! fully confined before it reads one. See docs/adr/0015.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::CapabilitySet;
use sandbox_protocol::MAX_DATAGRAM_BYTES;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::ExecRequest;
use sandbox_protocol::notice::StepFailure;
use sandbox_protocol::zygote::{self, ForkReport, ZygoteConfig};

use crate::capabilities;
use crate::cgroup::{Cgroup, Entry};
use crate::config::Config;
use crate::launch::{self, LaunchError};
use crate::program::Program;
use crate::rootfs::{self, Existing};
use crate::slot::{self, LivingSlot};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, SharedNumber};

/// The preloaded library. Empty if this build could not compile it.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/zygote.so"));
/// Its path for the runtime, in a private work directory.
const LIBRARY_PATH: &str = "/work/.fork.so";

/// Whether this build can fork zygotes.
pub fn can_fork() -> bool {
    !LIBRARY.is_empty()
}

/// Starts a runtime. If that fails, its socket closes.
pub(crate) fn start(request: &[u8], descriptors: Vec<OwnedFd>) -> Option<LivingSlot> {
    let mut descriptors = descriptors.into_iter();
    let (socket, stderr) = (descriptors.next()?, descriptors.next()?);
    let request = ExecRequest::decode(request).ok()?;
    // SAFETY: the launcher is one thread from its start to its end.
    match unsafe { syscall::clone_process(0, None) }.ok()? {
        Cloned::Child => {
            let Err(error) = become_runtime(&request, &socket, &stderr);
            let message = format!("{error}: {}\n", error.cause);
            let _ = rustix::io::write(&stderr, message.as_bytes());
            syscall::exit_now(1)
        }
        Cloned::Parent(_, process) => {
            Some(LivingSlot { init: process, supervisor: socket, owner: None })
        }
    }
}

/// In the child of the launcher: execs the runtime.
fn become_runtime(
    request: &ExecRequest<'_>,
    socket: &OwnedFd,
    stderr: &OwnedFd,
) -> Result<std::convert::Infallible, StepError> {
    set_parent_process_death_signal(Some(Signal::KILL)).at("set the parent death signal")?;
    syscall::close_all_but(&[socket.as_fd(), stderr.as_fd()]).at("close descriptors")?;
    rustix::process::setsid().at("start a session")?;
    // A private mount namespace, with its files at the same paths as a program's.
    syscall::unshare(syscall::NEW_MOUNT).at("enter a mount namespace")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", rootfs::WORK, "tmpfs", flags, Some(c"size=16m,mode=755"))
        .at("mount a work directory")?;
    rootfs::write_files(request, Existing::Refuse)?;
    std::fs::write(LIBRARY_PATH, LIBRARY).at("place the library")?;
    // Pipes, like a program's streams: a runtime inspects them at its start.
    let (stdin, _kept) = rustix::pipe::pipe().at("make its streams")?;
    let (_kept, stdout) = rustix::pipe::pipe().at("make its streams")?;
    rustix::stdio::dup2_stdin(&stdin).at("set standard input")?;
    rustix::stdio::dup2_stdout(&stdout).at("set standard output")?;
    rustix::stdio::dup2_stderr(stderr).at("set standard error")?;
    drop((stdin, stdout));
    let kept = rustix::io::dup(socket).at("keep the socket")?;
    let number = kept.as_raw_fd().to_string();
    let mut env = request.env.clone();
    let (preload, socket) =
        (format!("LD_PRELOAD={LIBRARY_PATH}"), format!("SANDBOX_FORK_SOCKET={number}"));
    env.extend(["SANDBOX_WARM=fork", &preload, &socket]);
    let program = Program::new(&ExecRequest { env, ..request.clone() })?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    program.settle()?;
    // These are needed to enter the namespaces of an undumpable init, and for nothing else.
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_CHROOT | CapabilitySet::SYS_PTRACE;
    capabilities::bound_to(needed).at("drop capabilities")?;
    rustix::thread::set_no_new_privs(true).at("set no_new_privs")?;
    let started = SharedNumber::new().at("allocate shared memory for the start time")?;
    std::mem::forget(kept);
    Err(program.execute(&started))
}

/// A running zygote, as the supervisor knows it. Dropping it ends it.
#[derive(Debug)]
pub struct Zygote {
    socket: OwnedFd,
}

/// A fork that waits in its sandbox.
#[derive(Debug)]
pub struct Fork {
    /// Its PID inside.
    pub process: u32,
    /// The listener for its denied calls.
    pub denied_calls: OwnedFd,
}

/// The sandbox that a fork joins.
#[allow(missing_debug_implementations)]
pub struct ForkTarget<'a> {
    /// Init of its sandbox.
    pub init: BorrowedFd<'a>,
    /// Its cgroup.
    pub cgroup: &'a dyn Cgroup,
    /// Standard input, output and error.
    pub streams: [BorrowedFd<'a>; 3],
    /// The Landlock rules of its sandbox.
    pub rules: BorrowedFd<'a>,
}

impl Zygote {
    /// Configures the zygote at the other end of this socket and waits until it is ready.
    pub(crate) fn connect(
        socket: OwnedFd,
        stderr: &OwnedFd,
        config: &Config,
        has_own_ids: bool,
        timeout: Duration,
    ) -> Result<Self, StepError> {
        // All of init's namespaces except the PID namespace, which a process can only be created
        // in.
        let flags = slot::clone_flags(config) | syscall::NEW_CGROUP | syscall::NEW_TIME;
        let flags = u32::try_from(flags & !syscall::NEW_PID).unwrap_or(0);
        let settings =
            ZygoteConfig { namespaces: flags, has_own_ids, seccomp_filter: &config.filter };
        let settings = settings.encode();
        if settings.len() > MAX_DATAGRAM_BYTES {
            // The filter would be truncated.
            return Err(Errno::TOOBIG).at("send the filter to the zygote");
        }
        socket::send(socket.as_fd(), &settings, &[]).at("configure the zygote")?;
        let answered = wait_for(&socket, timeout);
        let answer = answered.and_then(|()| socket::receive(socket.as_fd())).ok().flatten();
        if answer.is_some_and(|answer| answer.bytes == zygote::READY) {
            return Ok(Self { socket });
        }
        let mut text = [0; 1024];
        let _ = rustix::io::ioctl_fionbio(stderr, true);
        let length = rustix::io::read(stderr, &mut text[..]).unwrap_or(0);
        let said = String::from_utf8_lossy(&text[..length]).trim().to_owned();
        Err(StepError { step: format!("start the zygote ({said})"), cause: Errno::CHILD })
    }

    /// Forks the zygote into a sandbox.
    pub fn fork(&self, into: &ForkTarget<'_>) -> Result<Fork, LaunchError> {
        let (local, peer) = launch::connect("connect a fork")?;
        let entries = match into.cgroup.entry()? {
            Entry::Write(entries) => entries,
            Entry::CloneInto(directory) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&directory, "cgroup.procs", flags, Mode::empty());
                vec![file.at("open the cgroup of a sandbox")?]
            }
            Entry::Nothing => Vec::new(),
        };
        let mut descriptors = vec![peer.as_fd(), into.init];
        descriptors.extend(into.streams);
        descriptors.push(into.rules);
        descriptors.extend(entries.iter().map(AsFd::as_fd));
        socket::send(self.socket.as_fd(), zygote::FORK, &descriptors)
            .map_err(launch::timed_out)
            .at("ask the zygote to fork")?;
        drop(peer);
        let answer = socket::receive(local.as_fd()).map_err(launch::timed_out);
        let answer = answer.at("receive from a fork")?.ok_or(LaunchError::Gone)?;
        match (ForkReport::decode(&answer.bytes), answer.descriptors.into_iter().next()) {
            (Ok(ForkReport::Confined { pid }), Some(denied_calls)) => {
                Ok(Fork { process: pid, denied_calls })
            }
            (Ok(ForkReport::Failed { step, errno }), _) => {
                let step = format!("fork the zygote: {}", step.name());
                Err(StepError::from(StepFailure { step, errno }).into())
            }
            _ => Err(LaunchError::Gone),
        }
    }
}

fn wait_for(socket: &OwnedFd, timeout: Duration) -> Result<(), Errno> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(socket, PollFlags::IN)];
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut watched, Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(Errno::TIMEDOUT),
            polled => return polled.map(|_| ()),
        }
    }
}
