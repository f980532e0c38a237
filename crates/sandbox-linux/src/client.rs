//! The supervisor's side of the launcher and of one slot.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use crate::cgroup::{Cgroup, CgroupError, Entry};
use crate::order::{Config, Errand, Notice, Order, VolumeOwner};
use crate::reexec;
use crate::socket::{self, Message};
use crate::step::{AtStep, StepError};
use crate::syscall;

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
    /// Held while an errand that is answered on this socket is under way.
    socket: Mutex<OwnedFd>,
    process: Mutex<Child>,
}

/// A prepared slot, its init waiting for the one order.
pub struct Slot {
    /// Notices arrive here.
    pub socket: OwnedFd,
    /// Init's process.
    pub init: OwnedFd,
    /// The program's work directory, as a descriptor from inside.
    pub work: OwnedFd,
    /// Its cgroup.
    pub cgroup: Box<dyn Cgroup>,
    /// The program's user and group outside.
    pub owner: u32,
}

impl Launcher {
    /// Starts it and waits until the template of the root stands. It is given the directories in which
    /// our cgroups are made, to clean up there if we die.
    pub fn start(config: &Config, cgroup_parents: &[OwnedFd]) -> Result<Self, LaunchError> {
        let (process, socket) = reexec::spawn()?;
        let launcher = Self { socket: Mutex::new(socket), process: Mutex::new(process) };
        {
            let socket = launcher.socket();
            let parents: Vec<_> = cgroup_parents.iter().map(AsFd::as_fd).collect();
            socket::send(socket.as_fd(), &config.encode(), &parents)
                .at("configure the launcher")?;
            expect(socket.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
        }
        Ok(launcher)
    }

    /// Prepares a slot in this cgroup. Takes milliseconds: it belongs off the path of a request. If it
    /// cannot be prepared, nothing is left of it, its cgroup included.
    pub fn prepare_slot(&self, cgroup: Box<dyn Cgroup>) -> Result<Slot, LaunchError> {
        match self.try_prepare_slot(cgroup.as_ref()) {
            Ok((socket, init, work, owner)) => Ok(Slot { socket, init, work, cgroup, owner }),
            Err(error) => {
                // The first error is the one that matters; a cgroup that stays is swept later.
                let _ = cgroup.remove();
                Err(error)
            }
        }
    }

    fn try_prepare_slot(
        &self,
        cgroup: &dyn Cgroup,
    ) -> Result<(OwnedFd, OwnedFd, OwnedFd, u32), LaunchError> {
        let (ours, theirs) = socket::pair().at("connect a slot")?;
        let (entries, clone_into) = match cgroup.entry()? {
            Entry::Write(entries) => (entries, false),
            Entry::CloneInto(directory) => (vec![directory], true),
            Entry::Nothing => (Vec::new(), false),
        };
        let errand = Errand::Slot { clone_into };
        let mut descriptors = vec![theirs.as_fd()];
        descriptors.extend(entries.iter().map(AsFd::as_fd));
        socket::send(self.socket().as_fd(), &errand.encode(), &descriptors)
            .map_err(|_| LaunchError::Gone)?;
        drop(theirs);
        let (_, init) = expect(ours.as_fd(), |notice| matches!(notice, Notice::Cloned))?;
        let (notice, work) = expect(ours.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
        let (mut init, mut work) = (init.into_iter(), work.into_iter());
        match (notice, init.next(), work.next()) {
            (Notice::Ready { owner }, Some(init), Some(work)) => Ok((ours, init, work, owner)),
            _ => Err(LaunchError::Gone),
        }
    }

    /// A mount of a host path, to be sent with an order.
    pub fn open_volume(
        &self,
        path: &Path,
        writable: bool,
        owner: Option<VolumeOwner>,
    ) -> Result<OwnedFd, LaunchError> {
        let path = path.to_str().ok_or(Errno::ILSEQ).at("read a volume's path as text")?.to_owned();
        let socket = self.socket();
        let errand = Errand::Volume { path, writable, owner };
        socket::send(socket.as_fd(), &errand.encode(), &[]).map_err(|_| LaunchError::Gone)?;
        let (_, descriptors) =
            expect(socket.as_fd(), |notice| matches!(notice, Notice::Ready { .. }))?;
        descriptors.into_iter().next().ok_or(LaunchError::Gone)
    }

    fn socket(&self) -> std::sync::MutexGuard<'_, OwnedFd> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Everything of ours is cleaned up by now. The closing socket is the sign to go.
        let _ = socket::send(self.socket().as_fd(), &Errand::Farewell.encode(), &[]);
        if let Ok((gone, _)) = socket::pair() {
            *self.socket() = gone;
        }
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = process.wait();
    }
}

impl Slot {
    /// Sends the order. Descriptors: the three streams, the workspace's content if there is some, then a
    /// mount per volume.
    pub fn send(
        &self,
        order: &Order<'_>,
        streams: [BorrowedFd<'_>; 3],
        workspace: Option<BorrowedFd<'_>>,
        volumes: &[OwnedFd],
    ) -> Result<(), StepError> {
        let file = sealed_memory(&order.encode())?;
        let mut descriptors = vec![file.as_fd()];
        descriptors.extend(streams);
        descriptors.extend(workspace);
        descriptors.extend(volumes.iter().map(AsFd::as_fd));
        socket::send(self.socket.as_fd(), b"order", &descriptors).at("send an order")
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

/// Bytes that nobody can change any more, as a file.
pub fn sealed_memory(bytes: &[u8]) -> Result<OwnedFd, StepError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("sandbox", flags).at("make a memory file")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).at("fill a memory file")?;
        rest = &rest[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).at("rewind a memory file")?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals).at("seal a memory file")?;
    Ok(file)
}

fn decode(message: &Message) -> Result<Notice, StepError> {
    Notice::decode(&message.bytes).map_err(|_| Errno::PROTO).at("read a notice")
}

fn expect(
    socket: BorrowedFd<'_>,
    is_expected: impl Fn(&Notice) -> bool,
) -> Result<(Notice, Vec<OwnedFd>), LaunchError> {
    let message = match socket::receive(socket) {
        Ok(Some(message)) => message,
        Ok(None) | Err(Errno::CONNRESET) => return Err(LaunchError::Gone),
        Err(error) => return Err(error).at("hear from the launcher")?,
    };
    match decode(&message)? {
        Notice::Failed(error) => Err(error.into()),
        notice if is_expected(&notice) => Ok((notice, message.descriptors)),
        _ => Err(LaunchError::Gone),
    }
}
