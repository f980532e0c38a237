//! The supervisor's side of the launcher and of one slot.

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

use crate::cgroup::{Cgroup, CgroupError, Entry, wait_until_ready};
use crate::config::Config;
use crate::exec_message;
use crate::ids;
use crate::original::Original;
use crate::reexec;
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall;

/// How long the launcher may take to build the template of the root: it reads every directory of a tool chain,
/// which takes seconds from a cold disk.
const LAUNCHER_START_TIMEOUT: Duration = Duration::from_mins(1);
/// How long the launcher, an init or a stub may take to say the next thing, or to take what is sent to it. A slot takes
/// milliseconds; a thousand that are asked for at once on a busy host stand in line for seconds.
const SLOT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a launcher may take to end what is left and go. It waits two seconds for busy cgroups; a large
/// process that is killed takes a moment to give its memory back.
const LAUNCHER_EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the launcher or a slot could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step failed, here or in one of our other processes.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The cgroup of a slot could not be made.
    #[error("could not make a cgroup")]
    Cgroup(#[from] CgroupError),
    /// The launcher ended without a word.
    #[error("the launcher is gone")]
    Gone,
}

/// A running launcher. Dropping it ends it and everything it started.
#[derive(Debug)]
pub struct Launcher {
    /// Held while a request is sent.
    socket: Mutex<OwnedFd>,
    process: Mutex<Reaped>,
    /// The size that file systems are made with.
    disk: (u64, u64),
    config: Config,
}

/// A launcher whose process has been started and waits for its configuration. Executing a large program takes
/// milliseconds, in which the supervisor looks at the host. Dropping it ends the process.
#[derive(Debug)]
pub struct UnconfiguredLauncher {
    socket: OwnedFd,
    process: Reaped,
}

/// A launcher process, which is ended and reaped when dropped.
#[derive(Debug)]
struct Reaped(Child);

/// A prepared slot, its init waiting for the one order.
pub struct Slot {
    /// Notices arrive here.
    pub socket: OwnedFd,
    /// Init's process.
    pub init: OwnedFd,
    /// The program's work directory, as a descriptor from inside.
    pub work: OwnedFd,
    /// The Landlock rules of the sandbox, for a copy that is to come into it.
    pub rules: Option<OwnedFd>,
    /// Where the process that waits to become the program hears of it.
    orders: OwnedFd,
    /// The size that its file system was made with.
    disk: (u64, u64),
    /// Denied calls of the process that waits to become the program, if there is one and a filter.
    pub denied_calls: Option<OwnedFd>,
    /// Its cgroup.
    pub cgroup: Box<dyn Cgroup>,
    /// The program's user and group outside.
    pub owner: u32,
    /// What the supervisor counts it by, to be dropped when nothing is left of it.
    pub charges: Vec<Arc<dyn Send + Sync>>,
}

/// The program's ends of its streams, and the end of its standard input on which a runtime that waits is
/// told its program.
#[derive(Clone, Copy, Debug)]
pub struct SlotStreams<'a> {
    /// Where it reads.
    pub stdin: BorrowedFd<'a>,
    /// Where it writes.
    pub stdout: BorrowedFd<'a>,
    /// Where it complains.
    pub stderr: BorrowedFd<'a>,
    /// The other end of its standard input.
    pub job: BorrowedFd<'a>,
}

/// What is told of a slot while it is prepared.
struct Told {
    socket: OwnedFd,
    init: OwnedFd,
    work: OwnedFd,
    rules: Option<OwnedFd>,
    denied_calls: Option<OwnedFd>,
    owner: u32,
}

impl Told {
    /// Listens until everything was told. The processes of a slot speak in no certain order.
    fn hear(socket: OwnedFd, kind: SlotKind) -> Result<Self, LaunchError> {
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

    /// Configures it and waits until the template of the root stands. It is given the directories in which
    /// our cgroups are made, to clean up there if we die.
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
            // From now on it only receives requests here: each is answered on a socket of its own, so that an answer
            // that comes too late is never taken for the answer to something else.
            socket::set_timeout(socket.as_fd(), SLOT_TIMEOUT)
                .at("limit the wait for the launcher")?;
        }
        Ok(launcher)
    }
}

impl Launcher {
    /// Prepares a slot in this cgroup, with these streams. Takes milliseconds: it belongs off the path of
    /// a request. If it cannot be prepared, nothing is left of it, its cgroup included.
    pub fn prepare_slot(
        &self,
        cgroup: Box<dyn Cgroup>,
        kind: SlotKind,
        streams: SlotStreams<'_>,
    ) -> Result<Slot, LaunchError> {
        match self.try_prepare_slot(cgroup.as_ref(), kind, streams) {
            Ok((told, orders)) => {
                let Told { socket, init, work, rules, denied_calls, owner } = told;
                let disk = self.disk;
                let charges = Vec::new();
                Ok(Slot {
                    socket,
                    init,
                    work,
                    rules,
                    orders,
                    disk,
                    denied_calls,
                    cgroup,
                    owner,
                    charges,
                })
            }
            Err(error) => {
                // Its sockets are closed, so an init that was made ends by itself; one that hangs is killed. The
                // first error is the one that matters; a cgroup that stays is swept later.
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
    ) -> Result<(Told, OwnedFd), LaunchError> {
        let (ours, theirs) = connect("connect a slot")?;
        let (orders, hears_orders) = connect("connect a slot")?;
        let (entries, clone_into_cgroup) = match cgroup.entry()? {
            Entry::Write(entries) => (entries, false),
            Entry::CloneInto(directory) => (vec![directory], true),
            Entry::Nothing => (Vec::new(), false),
        };
        let request = LauncherRequest::PrepareSlot { clone_into_cgroup, kind };
        let SlotStreams { stdin, stdout, stderr, job } = streams;
        let mut descriptors =
            vec![theirs.as_fd(), stdin, stdout, stderr, job, hears_orders.as_fd()];
        descriptors.extend(entries.iter().map(AsFd::as_fd));
        self.send(&request, &descriptors)?;
        drop((theirs, hears_orders));
        Ok((Told::hear(ours, kind)?, orders))
    }

    /// Starts a runtime that is copied for sandboxes, and waits until it can be.
    pub fn start_original(
        &self,
        order: &ExecRequest<'_>,
        patience: Duration,
    ) -> Result<Original, LaunchError> {
        let (ours, theirs) = connect("connect a runtime")?;
        let (complaints, stderr) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("connect a runtime")?;
        let exec = order.encode();
        let request = LauncherRequest::StartZygote { exec: &exec };
        self.send(&request, &[theirs.as_fd(), stderr.as_fd()])?;
        drop((theirs, stderr));
        let (config, has_own_ids) = (&self.config, ids::are_available());
        Ok(Original::introduce(ours, &complaints, config, has_own_ids, patience)?)
    }

    /// A mount of a host path, to be sent with an order.
    pub fn open_volume(
        &self,
        path: &Path,
        symlinks: SymlinkPolicy,
        writable: bool,
        owner: Option<VolumeOwner>,
    ) -> Result<OwnedFd, LaunchError> {
        let path = path.to_str().ok_or(Errno::ILSEQ).at("read a volume's path as text")?;
        let (ours, theirs) = connect("connect a volume")?;
        let request = LauncherRequest::OpenVolume { path, symlinks, writable, owner };
        self.send(&request, &[theirs.as_fd()])?;
        drop(theirs);
        let (_, descriptors) =
            expect(ours.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
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
        // Everything of ours is cleaned up by now. The end of the socket is the sign to go; this takes no new
        // descriptor, as there may be none left.
        let _ = self.send(&LauncherRequest::Shutdown, &[]);
        let _ = rustix::net::shutdown(self.socket().as_fd(), rustix::net::Shutdown::Both);
        let Reaped(process) = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Dropping it ends what does not end by itself.
        let _ = ends_within(process, LAUNCHER_EXIT_TIMEOUT);
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // Everything it started dies with it. One that has ended is not reaped yet, so this reaches no other process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a child of ours ends within this time.
fn ends_within(process: &mut Child, timeout: Duration) -> bool {
    let handle = Pid::from_raw(process.id().cast_signed())
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let deadline = Instant::now() + timeout;
    match handle {
        Some(handle) => wait_until_ready(handle, PollFlags::IN, deadline).unwrap_or(false),
        // There is no descriptor left: look again and again.
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
    /// Sends an order. Descriptors: the workspace's content if there is some, then a mount per volume.
    /// Says whether the program-to-be carries it out itself: it then places its own files, and nobody says that
    /// it starts.
    pub fn send(
        &self,
        order: &ExecRequest<'_>,
        workspace: Option<BorrowedFd<'_>>,
        volumes: &[OwnedFd],
    ) -> Result<bool, StepError> {
        let mut descriptors: Vec<BorrowedFd<'_>> = workspace.into_iter().collect();
        descriptors.extend(volumes.iter().map(AsFd::as_fd));
        if order.needs_init(self.disk) {
            exec_message::send(self.socket.as_fd(), order, &descriptors)?;
            return Ok(false);
        }
        exec_message::send(self.orders.as_fd(), order, &[])?;
        // Init does not stand between the order and the program's start.
        let sent = InitMessage::ExecSentToStub.encode();
        socket::send(self.socket.as_fd(), &sent, &[]).at("tell init of a request")?;
        Ok(true)
    }

    /// Has files placed before there is a program, and waits until they are.
    pub fn place(&self, order: &ExecRequest<'_>) -> Result<(), LaunchError> {
        exec_message::send(self.orders.as_fd(), order, &[])?;
        expect(self.socket.as_fd(), |notice| matches!(notice, Notice::FilesWritten)).map(drop)
    }

    /// Sends the program that a runtime in this slot waits for.
    pub fn send_job(&self, order: &ExecRequest<'_>) -> Result<(), StepError> {
        exec_message::send(self.socket.as_fd(), order, &[])
    }

    /// Tells init, which waits for it before it starts the program, that the allowed addresses are listened at.
    pub fn network_is_open(&self) -> Result<(), StepError> {
        let open = InitMessage::NetworkOpen.encode();
        socket::send(self.socket.as_fd(), &open, &[]).at("tell init of the network")
    }

    /// Takes the next notice if there is one. `None` inside means that every process is gone.
    pub fn try_receive(&self) -> Result<Received, StepError> {
        match socket::try_receive(self.socket.as_fd()) {
            Ok(Some(message)) => {
                let notice = decode(&message)?;
                Ok(Received::Notice(notice, message.descriptors))
            }
            Ok(None) | Err(Errno::CONNRESET) => Ok(Received::Closed),
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(error) => Err(error).at("hear from the sandbox"),
        }
    }
}

/// What [`Slot::try_receive`] found.
#[derive(Debug)]
pub enum Received {
    /// A notice, and the descriptors that came with it.
    Notice(Notice, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// Every process of the slot is gone.
    Closed,
}

/// Asks init to end everything and report.
pub fn ask_to_end(init: BorrowedFd<'_>) -> Result<(), Errno> {
    syscall::signal_process(init, syscall::end_everything_signal())
}

fn decode(message: &Message) -> Result<Notice, StepError> {
    Notice::decode(&message.bytes).map_err(|_| Errno::PROTO).at("read a notice")
}

/// A socket to one of our processes on which nobody waits for ever, and its other end.
pub(crate) fn connect(step: &str) -> Result<(OwnedFd, OwnedFd), StepError> {
    let (ours, theirs) = socket::pair().at(step)?;
    socket::set_timeout(ours.as_fd(), SLOT_TIMEOUT).at(step)?;
    Ok((ours, theirs))
}

/// What a socket with a timeout says when the time is over.
pub(crate) fn timed_out(error: Errno) -> Errno {
    if error == Errno::AGAIN { Errno::TIMEDOUT } else { error }
}

/// A notice without the descriptor that it tells of is an error: waiting for another would never end.
fn required(descriptor: Option<OwnedFd>) -> Result<OwnedFd, LaunchError> {
    Ok(descriptor.ok_or(Errno::BADMSG).at("receive the descriptor that belongs to a notice")?)
}

fn expect(
    socket: BorrowedFd<'_>,
    is_expected: impl Fn(&Notice) -> bool,
) -> Result<(Notice, Vec<OwnedFd>), LaunchError> {
    let message = match socket::receive(socket) {
        Ok(Some(message)) => message,
        Ok(None) | Err(Errno::CONNRESET) => return Err(LaunchError::Gone),
        Err(error) => return Err(timed_out(error)).at("hear from the launcher")?,
    };
    match decode(&message)? {
        Notice::Failed(failure) => Err(StepError::from(failure).into()),
        notice if is_expected(&notice) => Ok((notice, message.descriptors)),
        _ => Err(LaunchError::Gone),
    }
}
