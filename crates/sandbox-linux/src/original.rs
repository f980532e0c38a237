//! A runtime that is started once, and copied for every sandbox.
//!
//! The launcher starts it among the template's mounts, with a library of ours in it (sandbox-zygote)
//! that waits for orders where the runtime calls `fork`. It has seen no program and never will: a copy
//! stands inside every wall of its sandbox before it reads one. See docs/adr/0015.

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
use crate::client::{self, LaunchError};
use crate::config::Config;
use crate::place;
use crate::program::Program;
use crate::slot::{self, LivingSlot};
use crate::socket;
use crate::step::{AtStep, StepError};
use crate::syscall::{self, Cloned, SharedNumber};

/// The library, where this build has one.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/zygote.so"));
/// Where the runtime finds it. What it sees in the work directory is its own.
const PLACE: &str = "/work/.fork.so";

/// Whether runtimes can be copied here.
pub fn can_copy() -> bool {
    !LIBRARY.is_empty()
}

/// Starts a runtime. If that fails, its socket closes.
pub(crate) fn start(order: &[u8], descriptors: Vec<OwnedFd>) -> Option<LivingSlot> {
    let mut descriptors = descriptors.into_iter();
    let (socket, stderr) = (descriptors.next()?, descriptors.next()?);
    let order = ExecRequest::decode(order).ok()?;
    // SAFETY: the launcher is one thread from its start to its end.
    match unsafe { syscall::clone_process(0, None) }.ok()? {
        Cloned::Child => {
            let Err(error) = become_runtime(&order, &socket, &stderr);
            let complaint = format!("{error}: {}\n", error.cause);
            let _ = rustix::io::write(&stderr, complaint.as_bytes());
            syscall::exit_now(1)
        }
        Cloned::Parent(_, process) => {
            Some(LivingSlot { init: process, supervisor: socket, owner: None })
        }
    }
}

/// In the copy of the launcher: becomes the runtime.
fn become_runtime(
    order: &ExecRequest<'_>,
    socket: &OwnedFd,
    stderr: &OwnedFd,
) -> Result<std::convert::Infallible, StepError> {
    set_parent_process_death_signal(Some(Signal::KILL)).at("bind its life to the launcher")?;
    syscall::close_all_but(&[socket.as_fd(), stderr.as_fd()]).at("close descriptors")?;
    rustix::process::setsid().at("start a session")?;
    // Mounts of its own, in which its files lie where a program's would.
    syscall::unshare(syscall::NEW_MOUNT).at("enter a mount namespace")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", place::WORK, "tmpfs", flags, Some(c"size=16m,mode=755"))
        .at("mount a work directory")?;
    place::write_files(order)?;
    std::fs::write(PLACE, LIBRARY).at("place the library")?;
    // Streams of the kind that a program's are: a runtime looks at them when it starts.
    let (stdin, _kept) = rustix::pipe::pipe().at("make its streams")?;
    let (_kept, stdout) = rustix::pipe::pipe().at("make its streams")?;
    rustix::stdio::dup2_stdin(&stdin).at("take standard input")?;
    rustix::stdio::dup2_stdout(&stdout).at("take standard output")?;
    rustix::stdio::dup2_stderr(stderr).at("take standard error")?;
    drop((stdin, stdout));
    let kept = rustix::io::dup(socket).at("keep the socket")?;
    let number = kept.as_raw_fd().to_string();
    let mut env = order.env.clone();
    let (preload, socket) =
        (format!("LD_PRELOAD={PLACE}"), format!("SANDBOX_FORK_SOCKET={number}"));
    env.extend(["SANDBOX_WARM=fork", &preload, &socket]);
    let program = Program::new(&ExecRequest { env, ..order.clone() })?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    program.settle()?;
    // To enter the namespaces of an init, which does not let itself be looked at, is all it is for.
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_CHROOT | CapabilitySet::SYS_PTRACE;
    capabilities::bound_to(needed).at("drop capabilities")?;
    rustix::thread::set_no_new_privs(true).at("renounce new privileges")?;
    let started = SharedNumber::new().at("make a place for the time of the start")?;
    std::mem::forget(kept);
    Err(program.execute(&started))
}

/// A runtime that can be copied, as the supervisor knows it. Dropping it ends it.
#[derive(Debug)]
pub struct Original {
    socket: OwnedFd,
}

/// A copy that waits in its sandbox.
#[derive(Debug)]
pub struct Copy {
    /// Its process id inside.
    pub process: u32,
    /// Denied calls of it.
    pub denied_calls: OwnedFd,
}

/// What a copy is put into.
#[allow(missing_debug_implementations)]
pub struct CopyInto<'a> {
    /// Init of its sandbox.
    pub init: BorrowedFd<'a>,
    /// Its cgroup.
    pub cgroup: &'a dyn Cgroup,
    /// Standard input, output and error.
    pub streams: [BorrowedFd<'a>; 3],
    /// The Landlock rules of its sandbox.
    pub rules: BorrowedFd<'a>,
}

impl Original {
    /// Waits until the runtime on the other end of this socket can be copied.
    pub(crate) fn introduce(
        socket: OwnedFd,
        stderr: &OwnedFd,
        config: &Config,
        has_own_ids: bool,
        patience: Duration,
    ) -> Result<Self, StepError> {
        // All of init's but the PID namespace, which is entered by being born in it.
        let flags = slot::clone_flags(config) | syscall::NEW_CGROUP | syscall::NEW_TIME;
        let flags = u32::try_from(flags & !syscall::NEW_PID).unwrap_or(0);
        let settings =
            ZygoteConfig { namespaces: flags, has_own_ids, seccomp_filter: &config.filter };
        let settings = settings.encode();
        if settings.len() > MAX_DATAGRAM_BYTES {
            // The rest of the filter would be lost on the way.
            return Err(Errno::TOOBIG).at("send the filter to the runtime");
        }
        socket::send(socket.as_fd(), &settings, &[]).at("speak to the runtime")?;
        let answered = wait_for(&socket, patience);
        let answer = answered.and_then(|()| socket::receive(socket.as_fd())).ok().flatten();
        if answer.is_some_and(|answer| answer.bytes == zygote::READY) {
            return Ok(Self { socket });
        }
        let mut text = [0; 1024];
        let _ = rustix::io::ioctl_fionbio(stderr, true);
        let length = rustix::io::read(stderr, &mut text[..]).unwrap_or(0);
        let said = String::from_utf8_lossy(&text[..length]).trim().to_owned();
        Err(StepError {
            step: format!("start the runtime that is copied ({said})"),
            cause: Errno::CHILD,
        })
    }

    /// Makes a copy.
    pub fn copy(&self, into: &CopyInto<'_>) -> Result<Copy, LaunchError> {
        let (ours, theirs) = client::connect("connect a copy")?;
        let entries = match into.cgroup.entry()? {
            Entry::Write(entries) => entries,
            Entry::CloneInto(directory) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&directory, "cgroup.procs", flags, Mode::empty());
                vec![file.at("open the cgroup of a sandbox")?]
            }
            Entry::Nothing => Vec::new(),
        };
        let mut descriptors = vec![theirs.as_fd(), into.init];
        descriptors.extend(into.streams);
        descriptors.push(into.rules);
        descriptors.extend(entries.iter().map(AsFd::as_fd));
        socket::send(self.socket.as_fd(), zygote::FORK, &descriptors)
            .map_err(client::timed_out)
            .at("ask the runtime for a copy")?;
        drop(theirs);
        let answer = socket::receive(ours.as_fd()).map_err(client::timed_out);
        let answer = answer.at("hear from a copy")?.ok_or(LaunchError::Gone)?;
        match (ForkReport::decode(&answer.bytes), answer.descriptors.into_iter().next()) {
            (Ok(ForkReport::Confined { pid }), Some(denied_calls)) => {
                Ok(Copy { process: pid, denied_calls })
            }
            (Ok(ForkReport::Failed { step, errno }), _) => {
                let step = format!("fork the zygote: {}", step.name());
                Err(StepError::from(StepFailure { step, errno }).into())
            }
            _ => Err(LaunchError::Gone),
        }
    }
}

fn wait_for(socket: &OwnedFd, patience: Duration) -> Result<(), Errno> {
    let deadline = Instant::now() + patience;
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
