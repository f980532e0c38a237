//! The supervisor's side of the launcher and of a slot.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::{ExecRequest, InitMessage};
use sandbox_protocol::launcher::{LauncherRequest, SlotKind, SymlinkPolicy, VolumeOwner};
use sandbox_protocol::notice::Notice;

use crate::cgroup::{Cgroup, Entry, wait_until_ready};
use crate::config::Config;
use crate::exec_message;
use crate::ids;
use crate::launch::{LaunchError, SLOT_TIMEOUT, connect, timed_out};
use crate::reexec;
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall;
use crate::zygote::Zygote;

/// Maximum time for the launcher to build the root template: it reads every directory of a
/// toolchain, which takes seconds from a cold disk.
const LAUNCHER_START_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum time for a launcher to clean up and exit. It waits two seconds for busy cgroups, and a
/// large process takes a moment to free its memory.
const LAUNCHER_EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A running launcher. Dropping it ends it and everything that it started.
#[derive(Debug)]
pub struct Launcher {
    /// Locked while a request is sent.
    socket: Mutex<OwnedFd>,
    process: Mutex<Reaped>,
    /// Default size of writable file systems: bytes and inodes.
    disk: (u64, u64),
    config: Config,
}

/// A launcher process that waits for its configuration. Executing a large program takes
/// milliseconds, during which the supervisor probes the host. Dropping it ends the process.
#[derive(Debug)]
pub struct UnconfiguredLauncher {
    socket: OwnedFd,
    process: Reaped,
}

/// A child process that is killed and reaped when dropped.
#[derive(Debug)]
struct Reaped(Child);

/// A prepared slot. Its init waits for one exec request.
pub struct Slot {
    /// Receives notices.
    pub socket: OwnedFd,
    /// Pidfd of init.
    pub init: OwnedFd,
    /// The program's work directory, opened inside the sandbox.
    pub work: OwnedFd,
    /// The Landlock rules, for a fork of a zygote.
    pub rules: Option<OwnedFd>,
    /// Sends requests to the stub.
    request_sender: OwnedFd,
    /// The size of its writable file system: bytes and inodes.
    disk: (u64, u64),
    /// The listener for denied calls of the stub, if there are a stub and a filter.
    pub denied_calls: Option<OwnedFd>,
    /// Its cgroup.
    pub cgroup: Box<dyn Cgroup>,
    /// The program's user and group outside.
    pub owner: u32,
    /// Resources that the slot is charged for, dropped when nothing is left of it.
    pub charges: Vec<Arc<dyn Send + Sync>>,
}

/// The program's ends of its streams, and the other end of its standard input, through which init
/// passes a job to a waiting runtime.
#[derive(Clone, Copy, Debug)]
pub struct SlotStreams<'a> {
    /// Standard input.
    pub stdin: BorrowedFd<'a>,
    /// Standard output.
    pub stdout: BorrowedFd<'a>,
    /// Standard error.
    pub stderr: BorrowedFd<'a>,
    /// The writing end of standard input.
    pub job: BorrowedFd<'a>,
}

/// What the notices during preparation contain.
struct PreparedSlot {
    socket: OwnedFd,
    init: OwnedFd,
    work: OwnedFd,
    rules: Option<OwnedFd>,
    denied_calls: Option<OwnedFd>,
    owner: u32,
}

impl PreparedSlot {
    /// Receives notices until the slot is ready. They arrive in no fixed order, from several
    /// processes.
    fn recv(socket: OwnedFd, kind: SlotKind) -> Result<Self, LaunchError> {
        let (mut init, mut ready, mut confined) =
            (None, None, (kind != SlotKind::Any).then_some(None));
        loop {
            if let (Some(_), Some(_), Some(_)) = (&init, &ready, &confined) {
                break;
            }
            let (notice, descriptors) = expect(socket.as_fd(), |_| true)?;
            let mut descriptors = descriptors.into_iter();
            match notice {
                Notice::Cloned => init = Some(required(descriptors.next())?),
                Notice::Ready { owner } => {
                    let work = required(descriptors.next())?;
                    ready = Some((owner, work, descriptors.next()));
                }
                Notice::Confined => confined = Some(descriptors.next()),
                _ => return Err(LaunchError::Gone),
            }
        }
        match (init, ready, confined) {
            (Some(init), Some((owner, work, rules)), Some(denied_calls)) => {
                Ok(Self { socket, init, work, rules, denied_calls, owner })
            }
            _ => Err(LaunchError::Gone),
        }
    }
}

impl UnconfiguredLauncher {
    /// Starts the process.
    pub fn spawn() -> Result<Self, LaunchError> {
        let (process, socket) = reexec::spawn()?;
        Ok(Self { socket, process: Reaped(process) })
    }

    /// Configures the launcher and waits for the root template. `cgroup_parents` are the
    /// directories of this supervisor's cgroups, which the launcher cleans up if the supervisor
    /// dies.
    pub fn configure(
        self,
        config: &Config,
        cgroup_parents: &[OwnedFd],
    ) -> Result<Launcher, LaunchError> {
        let launcher = Launcher {
            socket: Mutex::new(self.socket),
            process: Mutex::new(self.process),
            disk: (config.disk_bytes, config.disk_inodes),
            config: config.clone(),
        };
        {
            let socket = launcher.socket();
            socket::set_timeout(socket.as_fd(), LAUNCHER_START_TIMEOUT)
                .at("limit the wait for the launcher")?;
            let parents: Vec<_> = cgroup_parents.iter().map(AsFd::as_fd).collect();
            socket::send(socket.as_fd(), &config.encode(), &parents)
                .at("configure the launcher")?;
            expect(socket.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
            // From now on this socket carries requests only. Each is answered on a socket of its
            // own, so that a late answer cannot be mistaken for another one.
            socket::set_timeout(socket.as_fd(), SLOT_TIMEOUT)
                .at("limit the wait for the launcher")?;
        }
        Ok(launcher)
    }
}

impl Launcher {
    /// Prepares a slot in this cgroup, with these streams. Takes milliseconds, so it should happen
    /// ahead of requests. On failure nothing is left, including the cgroup.
    pub fn prepare_slot(
        &self,
        cgroup: Box<dyn Cgroup>,
        kind: SlotKind,
        streams: SlotStreams<'_>,
    ) -> Result<Slot, LaunchError> {
        match self.try_prepare_slot(cgroup.as_ref(), kind, streams) {
            Ok((prepared, request_sender)) => {
                let PreparedSlot { socket, init, work, rules, denied_calls, owner } = prepared;
                let disk = self.disk;
                let charges = Vec::new();
                Ok(Slot {
                    socket,
                    init,
                    work,
                    rules,
                    request_sender,
                    disk,
                    denied_calls,
                    cgroup,
                    owner,
                    charges,
                })
            }
            Err(error) => {
                // Its sockets are closed, so its init exits by itself; one that hangs is killed.
                // The first error is reported; a cgroup that stays is swept later.
                let _ = cgroup.dissolve();
                Err(error)
            }
        }
    }

    fn try_prepare_slot(
        &self,
        cgroup: &dyn Cgroup,
        kind: SlotKind,
        streams: SlotStreams<'_>,
    ) -> Result<(PreparedSlot, OwnedFd), LaunchError> {
        let (local, peer) = connect("connect a slot")?;
        let (request_sender, request_receiver) = connect("connect a slot")?;
        let (entries, clone_into_cgroup) = match cgroup.entry()? {
            Entry::Write(entries) => (entries, false),
            Entry::CloneInto(directory) => (vec![directory], true),
            Entry::Nothing => (Vec::new(), false),
        };
        let request = LauncherRequest::PrepareSlot { clone_into_cgroup, kind };
        let SlotStreams { stdin, stdout, stderr, job } = streams;
        let mut descriptors =
            vec![peer.as_fd(), stdin, stdout, stderr, job, request_receiver.as_fd()];
        descriptors.extend(entries.iter().map(AsFd::as_fd));
        self.send(&request, &descriptors)?;
        drop((peer, request_receiver));
        Ok((PreparedSlot::recv(local, kind)?, request_sender))
    }

    /// Starts a zygote and waits until it can be forked.
    pub fn start_zygote(
        &self,
        request: &ExecRequest<'_>,
        timeout: Duration,
    ) -> Result<Zygote, LaunchError> {
        let (local, peer) = connect("connect a runtime")?;
        let (stderr_reader, stderr) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("connect a runtime")?;
        let exec = request.encode();
        let request = LauncherRequest::StartZygote { exec: &exec };
        self.send(&request, &[peer.as_fd(), stderr.as_fd()])?;
        drop((peer, stderr));
        let (config, has_own_ids) = (&self.config, ids::are_available());
        Ok(Zygote::connect(local, &stderr_reader, config, has_own_ids, timeout)?)
    }

    /// Opens a mount of a host path, to be sent with an exec request.
    pub fn open_volume(
        &self,
        path: &Path,
        symlinks: SymlinkPolicy,
        writable: bool,
        owner: Option<VolumeOwner>,
    ) -> Result<OwnedFd, LaunchError> {
        let path = path.to_str().ok_or(Errno::ILSEQ).at("read a volume's path as text")?;
        let (local, peer) = connect("connect a volume")?;
        let request = LauncherRequest::OpenVolume { path, symlinks, writable, owner };
        self.send(&request, &[peer.as_fd()])?;
        drop(peer);
        let (_, descriptors) =
            expect(local.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
        required(descriptors.into_iter().next())
    }

    fn send(
        &self,
        request: &LauncherRequest<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LaunchError> {
        match socket::send(self.socket().as_fd(), &request.encode(), descriptors) {
            Ok(()) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(LaunchError::Gone),
            Err(error) => Err(timed_out(error)).at("send a request to the launcher")?,
        }
    }

    fn socket(&self) -> std::sync::MutexGuard<'_, OwnedFd> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // All slots are gone by now. Closing the socket tells the launcher to exit; this needs no
        // new descriptor, because there may be none left.
        let _ = self.send(&LauncherRequest::Shutdown, &[]);
        let _ = rustix::net::shutdown(self.socket().as_fd(), rustix::net::Shutdown::Both);
        let Reaped(process) = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Dropping it kills it if it did not exit.
        let _ = ends_within(process, LAUNCHER_EXIT_TIMEOUT);
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // Everything that it started dies with it. It is not reaped yet, so its PID cannot be
        // another process's.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a child exits within this time.
fn ends_within(process: &mut Child, timeout: Duration) -> bool {
    let handle = Pid::from_raw(process.id().cast_signed())
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let deadline = Instant::now() + timeout;
    match handle {
        Some(handle) => wait_until_ready(handle, PollFlags::IN, deadline).unwrap_or(false),
        // No descriptor is left: poll.
        None => loop {
            match process.try_wait() {
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                ended => return matches!(ended, Ok(Some(_))),
            }
        },
    }
}

impl Slot {
    /// Sends the exec request. Descriptors: the workspace's content if there is any, then a mount
    /// for each volume. Returns true if the stub handles the request, which then starts without a
    /// `Starting` notice.
    pub fn send(
        &self,
        request: &ExecRequest<'_>,
        workspace: Option<BorrowedFd<'_>>,
        volumes: &[OwnedFd],
    ) -> Result<bool, StepError> {
        let mut descriptors: Vec<BorrowedFd<'_>> = workspace.into_iter().collect();
        descriptors.extend(volumes.iter().map(AsFd::as_fd));
        if request.needs_init(self.disk) {
            exec_message::send(self.socket.as_fd(), request, &descriptors)?;
            return Ok(false);
        }
        exec_message::send(self.request_sender.as_fd(), request, &[])?;
        // Init is not involved between the request and the program's start.
        let sent = InitMessage::ExecSentToStub.encode();
        socket::send(self.socket.as_fd(), &sent, &[]).at("notify init of a request")?;
        Ok(true)
    }

    /// Places files before the program is known, and waits until they are placed.
    pub fn place(&self, request: &ExecRequest<'_>) -> Result<(), LaunchError> {
        exec_message::send(self.request_sender.as_fd(), request, &[])?;
        expect(self.socket.as_fd(), |notice| matches!(notice, Notice::FilesWritten)).map(drop)
    }

    /// Sends the program for the runtime that waits in this slot.
    pub fn send_job(&self, request: &ExecRequest<'_>) -> Result<(), StepError> {
        exec_message::send(self.socket.as_fd(), request, &[])
    }

    /// Tells init, which waits for it, that the listeners of the allowed addresses are open.
    pub fn network_is_open(&self) -> Result<(), StepError> {
        let open = InitMessage::NetworkOpen.encode();
        socket::send(self.socket.as_fd(), &open, &[]).at("notify init of the network")
    }

    /// Receives the next notice, if there is one.
    pub fn try_receive(&self) -> Result<Received, StepError> {
        try_receive(self.socket.as_fd())
    }
}

/// Receives the next notice on a socket, if there is one.
pub(crate) fn try_receive(socket: BorrowedFd<'_>) -> Result<Received, StepError> {
    match socket::try_receive(socket) {
        Ok(Some(message)) => {
            let notice = decode(&message)?;
            Ok(Received::Notice(notice, message.descriptors))
        }
        Ok(None) | Err(Errno::CONNRESET) => Ok(Received::Closed),
        Err(Errno::AGAIN) => Ok(Received::Nothing),
        Err(error) => Err(error).at("receive from the sandbox"),
    }
}

/// The result of [`Slot::try_receive`].
#[derive(Debug)]
pub enum Received {
    /// A notice and its descriptors.
    Notice(Notice, Vec<OwnedFd>),
    /// No notice yet.
    Nothing,
    /// All processes of the slot have exited.
    Closed,
}

/// Asks init to kill everything and to report.
pub fn ask_to_end(init: BorrowedFd<'_>) -> Result<(), Errno> {
    syscall::signal_process(init, syscall::end_everything_signal())
}

fn decode(message: &Message) -> Result<Notice, StepError> {
    Notice::decode(&message.bytes).map_err(|_| Errno::PROTO).at("read a notice")
}

/// A notice without its descriptor is an error: the descriptor will not follow later.
pub(crate) fn required(descriptor: Option<OwnedFd>) -> Result<OwnedFd, LaunchError> {
    Ok(descriptor.ok_or(Errno::BADMSG).at("receive the descriptor that belongs to a notice")?)
}

pub(crate) fn expect(
    socket: BorrowedFd<'_>,
    is_expected: impl Fn(&Notice) -> bool,
) -> Result<(Notice, Vec<OwnedFd>), LaunchError> {
    let message = match socket::receive(socket) {
        Ok(Some(message)) => message,
        Ok(None) | Err(Errno::CONNRESET) => return Err(LaunchError::Gone),
        Err(error) => return Err(timed_out(error)).at("receive from the launcher")?,
    };
    match decode(&message)? {
        Notice::Failed(failure) => Err(StepError::from(failure).into()),
        notice if is_expected(&notice) => Ok((notice, message.descriptors)),
        _ => Err(LaunchError::Gone),
    }
}
