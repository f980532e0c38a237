//! What our processes say to each other.
//!
//! supervisor → launcher: one [`Config`], then [`Errand`]s.
//! supervisor → init: one [`Order`], or two where the first starts a runtime that waits for its program.
//! launcher, init and program → supervisor: [`Notice`]s, all on the slot's one socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::step::StepError;
use crate::walls::Walls;
use crate::wire::{Malformed, Reader, Writer};

use rustix::io::Errno;

/// What the launcher must know before it can do anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which walls to build.
    pub walls: Walls,
    /// The unpacked image whose files are the root; empty for the host's own programs.
    pub image: String,
    /// The compiled system-call filter.
    pub filter: Vec<u8>,
    /// Whether denied calls are to be told to the supervisor.
    pub filter_notifies: bool,
    /// How the names of the supervisor's cgroups begin. Their parent directories come as descriptors.
    pub cgroup_prefix: String,
    /// Size of the writable file system of a slot; an order that differs changes it.
    pub disk_bytes: u64,
    /// Files on it.
    pub disk_inodes: u64,
}

/// A file to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderFile<'a> {
    /// Where, below the work directory; checked to be plain and relative.
    pub path: &'a str,
    /// Its bytes.
    pub contents: &'a [u8],
    /// Whether it can be executed.
    pub executable: bool,
}

/// A host directory or file to show; its mount travels as a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderVolume<'a> {
    /// Where inside.
    pub destination: &'a str,
    /// Whether it is a directory or a single file.
    pub is_directory: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// What is between it and the program.
    pub overlay: Overlay,
}

/// Whether a host directory is shown through an overlay of the sandbox's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// It is not: a volume is shared on purpose.
    None,
    /// A toolchain, which has inodes of the sandbox's own.
    ReadOnly,
    /// What is written goes to the sandbox's own file system, over what the host has.
    CopyOnWrite,
}

impl Overlay {
    fn decode(number: u64) -> Result<Self, Malformed> {
        let all = [Self::None, Self::ReadOnly, Self::CopyOnWrite];
        all.into_iter().find(|overlay| *overlay as u64 == number).ok_or(Malformed)
    }
}

/// A workspace to lay out in the work directory; its content travels as a descriptor, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderWorkspace {
    /// Size of the file system that is made for it.
    pub bytes: u64,
    /// Files on it.
    pub inodes: u64,
    /// Whether there is something to lay out.
    pub has_content: bool,
}

/// One program to run. Without arguments there is none yet, and files are placed for one to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order<'a> {
    /// Program and arguments.
    pub argv: Vec<&'a str>,
    /// `NAME=value` each.
    pub env: Vec<&'a str>,
    /// Where to start, below the work directory; empty for itself.
    pub directory: &'a str,
    /// Files to place.
    pub files: Vec<OrderFile<'a>>,
    /// Size of the writable file system.
    pub disk_bytes: u64,
    /// Files on it.
    pub disk_inodes: u64,
    /// Kernel resource numbers and values.
    pub rlimits: Vec<(u64, u64)>,
    /// Cores it may run on as a bit each, where that is how its share is limited; 0 for all.
    pub cores: u64,
    /// Whether its loopback is up.
    pub loopback: bool,
    /// The port on its loopback where the supervisor is to listen; 0 for none.
    pub gate_port: u16,
    /// Whether every address is at hand, and the supervisor decides which of them answer.
    pub reaches_out: bool,
    /// Host directories to show.
    pub volumes: Vec<OrderVolume<'a>>,
    /// The workspace it works in.
    pub workspace: Option<OrderWorkspace>,
    /// Whether what is started waits for its program, which comes as a second order.
    pub waits: bool,
    /// The process inside that carries it out, if init did not start it; 0 if it did.
    pub adopts: u32,
}

/// What a slot is prepared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Any program: a process is confined ahead and only has to become it.
    Any,
    /// A runtime that is started ahead and waits for its program.
    Waiting,
    /// A copy of such a runtime, made elsewhere.
    Adopting,
}

impl SlotKind {
    const ALL: [Self; 3] = [Self::Any, Self::Waiting, Self::Adopting];
}

/// The program's ends of its streams, and where what waits to be a program hears of it: a runtime on its
/// standard input, the stub on a socket.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) job: OwnedFd,
    pub(crate) orders: OwnedFd,
}

impl Streams {
    /// Takes them from the front of what came with an errand.
    pub(crate) fn take(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            stdin: descriptors.next()?,
            stdout: descriptors.next()?,
            stderr: descriptors.next()?,
            job: descriptors.next()?,
            orders: descriptors.next()?,
        })
    }

    pub(crate) fn all(&self) -> [BorrowedFd<'_>; 5] {
        [&self.stdin, &self.stdout, &self.stderr, &self.job, &self.orders].map(AsFd::as_fd)
    }
}

impl Config {
    pub(crate) fn encode(&self) -> Vec<u8> {
        Writer::default()
            .number(self.walls.to_number())
            .text(&self.image)
            .bytes(&self.filter)
            .flag(self.filter_notifies)
            .text(&self.cgroup_prefix)
            .number(self.disk_bytes)
            .number(self.disk_inodes)
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let walls = Walls::from_number(reader.number()?);
        let image = reader.text()?.to_owned();
        let filter = reader.bytes()?.to_vec();
        Ok(Self {
            walls,
            image,
            filter,
            filter_notifies: reader.flag()?,
            cgroup_prefix: reader.text()?.to_owned(),
            disk_bytes: reader.number()?,
            disk_inodes: reader.number()?,
        })
    }
}

impl<'a> Order<'a> {
    /// Whether only init can carry it out: it asks for more than a process that is confined already could
    /// do. `disk` is the size that file systems are made with, bytes and files.
    pub(crate) fn needs_init(&self, disk: (u64, u64)) -> bool {
        self.waits
            || self.workspace.is_some()
            || !self.volumes.is_empty()
            || self.loopback
            || self.gate_port != 0
            || self.reaches_out
            || self.cores != 0
            || (self.disk_bytes, self.disk_inodes) != disk
    }

    /// Appends the order to these bytes.
    pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) {
        let text = |writer: &mut Writer, text: &&str| {
            writer.text(text);
        };
        let mut writer = Writer::after(std::mem::take(bytes));
        writer
            .list(&self.argv, text)
            .list(&self.env, text)
            .text(self.directory)
            .list(&self.files, |writer, file| {
                writer.text(file.path).bytes(file.contents).flag(file.executable);
            })
            .number(self.disk_bytes)
            .number(self.disk_inodes)
            .list(&self.rlimits, |writer, (resource, value)| {
                writer.number(*resource).number(*value);
            })
            .number(self.cores)
            .flag(self.loopback)
            .number(self.gate_port.into())
            .flag(self.reaches_out)
            .list(&self.volumes, |writer, volume| {
                writer.text(volume.destination).flag(volume.is_directory);
                writer.flag(volume.writable).number(volume.overlay as u64);
            })
            .list(self.workspace.as_slice(), |writer, workspace| {
                writer.number(workspace.bytes).number(workspace.inodes);
                writer.flag(workspace.has_content);
            })
            .flag(self.waits)
            .number(self.adopts.into());
        *bytes = writer.finish();
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            argv: reader.list(Reader::text)?,
            env: reader.list(Reader::text)?,
            directory: reader.text()?,
            files: reader.list(|reader| {
                Ok(OrderFile {
                    path: reader.text()?,
                    contents: reader.bytes()?,
                    executable: reader.flag()?,
                })
            })?,
            disk_bytes: reader.number()?,
            disk_inodes: reader.number()?,
            rlimits: reader.list(|reader| Ok((reader.number()?, reader.number()?)))?,
            cores: reader.number()?,
            loopback: reader.flag()?,
            gate_port: u16::try_from(reader.number()?).map_err(|_| Malformed)?,
            reaches_out: reader.flag()?,
            volumes: reader.list(|reader| {
                Ok(OrderVolume {
                    destination: reader.text()?,
                    is_directory: reader.flag()?,
                    writable: reader.flag()?,
                    overlay: Overlay::decode(reader.number()?)?,
                })
            })?,
            workspace: reader
                .list(|reader| {
                    Ok(OrderWorkspace {
                        bytes: reader.number()?,
                        inodes: reader.number()?,
                        has_content: reader.flag()?,
                    })
                })?
                .pop(),
            waits: reader.flag()?,
            adopts: u32::try_from(reader.number()?).map_err(|_| Malformed)?,
        })
    }
}

/// Whose a volume is on the host, and who that is to the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeOwner {
    /// The user outside.
    pub user: u32,
    /// The group outside.
    pub group: u32,
    /// The program's user and group, as the host knows them.
    pub program: u32,
}

/// What becomes of a path on the host with a link among its directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// They are followed: the path is one of ours.
    Followed,
    /// It is refused: the path was resolved and looked at, and a link that is there now came after.
    Refused,
}

/// What the launcher is sent to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Prepare a slot. Descriptors: the slot's socket, those of [`Streams`], then its cgroup entries.
    Slot {
        /// Whether the one entry is a directory to be cloned into, rather than files to write "0" to.
        clone_into: bool,
        /// What for.
        kind: SlotKind,
    },
    /// The supervisor has cleaned up after itself and is about to go. Without this word its end means
    /// that it died, and what it left is the launcher's to remove.
    Farewell,
    /// Start a runtime that is copied for sandboxes. Descriptors: its socket, and where it complains.
    Original {
        /// How, as an encoded order.
        order: Vec<u8>,
    },
    /// Make a mount of a host path, to be moved into a sandbox. Answered with the mount's descriptor.
    Volume {
        /// The path on the host.
        path: String,
        /// What if there is a link on it.
        links: Links,
        /// Whether it can be written.
        writable: bool,
        /// Whose it is, if that differs from who the program is.
        owner: Option<VolumeOwner>,
    },
}

impl Errand {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Slot { clone_into, kind } => {
                writer.number(1).flag(*clone_into).number(*kind as u64);
            }
            Self::Farewell => {
                writer.number(3);
            }
            Self::Original { order } => {
                writer.number(4).bytes(order);
            }
            Self::Volume { path, links, writable, owner } => {
                let VolumeOwner { user, group, program } = owner.unwrap_or_default();
                writer.number(2).text(path).flag(*links == Links::Followed).flag(*writable);
                writer.flag(owner.is_some());
                writer.number(user.into()).number(group.into()).number(program.into());
            }
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        match reader.number()? {
            1 => {
                let clone_into = reader.flag()?;
                let number = reader.number()?;
                let kind = SlotKind::ALL.into_iter().find(|kind| *kind as u64 == number);
                Ok(Self::Slot { clone_into, kind: kind.ok_or(Malformed)? })
            }
            3 => Ok(Self::Farewell),
            4 => Ok(Self::Original { order: reader.bytes()?.to_vec() }),
            2 => {
                let path = reader.text()?.to_owned();
                let links = if reader.flag()? { Links::Followed } else { Links::Refused };
                let writable = reader.flag()?;
                let has_owner = reader.flag()?;
                let mut id = || u32::try_from(reader.number()?).map_err(|_| Malformed);
                let owner = VolumeOwner { user: id()?, group: id()?, program: id()? };
                let owner = has_owner.then_some(owner);
                Ok(Self::Volume { path, links, writable, owner })
            }
            _ => Err(Malformed),
        }
    }
}

/// How a program ended and what init counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitNotice {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    /// From just before exec to its end.
    pub wall_nanos: u64,
    /// CPU time in user mode of the program and all descendants that were waited for.
    pub user_micros: u64,
    /// The same in the kernel.
    pub system_micros: u64,
    /// Largest resident size of one of them.
    pub largest_kib: u64,
    /// CPU time of init itself, which the cgroup counts too.
    pub init_user_micros: u64,
    /// The same in the kernel.
    pub init_system_micros: u64,
    /// Bytes read by the program and its descendants.
    pub read_bytes: u64,
    /// Bytes written by them.
    pub written_bytes: u64,
}

/// What the supervisor is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Init was cloned. Descriptor: its process.
    Cloned,
    /// The walls stand, and init waits for an order. Descriptor: the work directory.
    Ready {
        /// The program's user and group outside.
        owner: u32,
    },
    /// The work directory is another one now, that of a workspace. Descriptor: itself.
    Workspace,
    /// Someone may come out of the sandbox. Descriptor: a socket that listens on its loopback.
    Gate,
    /// Every address is at hand. Descriptors: those of `way_out::Ends`, in as many messages as it takes.
    Network,
    /// A process of a slot stands inside every wall and waits to become the program. Descriptor, if there
    /// is a filter: its notifications.
    Confined,
    /// The files of an order without a program are placed.
    Placed,
    /// The program is about to start. Descriptor, if there is a filter that was not told of yet: its
    /// notifications.
    Starting,
    /// A step failed.
    Failed(StepError),
    /// The program ended, and so did everything it left behind.
    Exited(ExitNotice),
    /// Init is gone, and with it every process of the sandbox.
    Gone,
}

impl Notice {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Cloned => writer.number(1),
            Self::Ready { owner } => writer.number(2).number((*owner).into()),
            Self::Starting => writer.number(3),
            Self::Failed(error) => writer
                .number(5)
                .text(&error.step)
                .number(error.cause.raw_os_error().unsigned_abs().into()),
            Self::Exited(exit) => {
                writer.number(6);
                for value in [exit.code, exit.signal] {
                    writer.flag(value.is_some()).number(value.unwrap_or(0).unsigned_abs().into());
                }
                for value in [
                    exit.wall_nanos,
                    exit.user_micros,
                    exit.system_micros,
                    exit.largest_kib,
                    exit.init_user_micros,
                    exit.init_system_micros,
                    exit.read_bytes,
                    exit.written_bytes,
                ] {
                    writer.number(value);
                }
                &mut writer
            }
            Self::Gone => writer.number(7),
            Self::Gate => writer.number(8),
            Self::Workspace => writer.number(9),
            Self::Confined => writer.number(10),
            Self::Placed => writer.number(11),
            Self::Network => writer.number(12),
        };
        writer.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(match reader.number()? {
            1 => Self::Cloned,
            2 => Self::Ready { owner: u32::try_from(reader.number()?).map_err(|_| Malformed)? },
            3 => Self::Starting,
            5 => {
                let step = reader.text()?.to_owned();
                let number = i32::try_from(reader.number()?).map_err(|_| Malformed)?;
                Self::Failed(StepError { step, cause: Errno::from_raw_os_error(number) })
            }
            6 => Self::Exited(decode_exit(&mut reader)?),
            7 => Self::Gone,
            8 => Self::Gate,
            9 => Self::Workspace,
            10 => Self::Confined,
            11 => Self::Placed,
            12 => Self::Network,
            _ => return Err(Malformed),
        })
    }
}

fn decode_exit(reader: &mut Reader<'_>) -> Result<ExitNotice, Malformed> {
    let mut optional = || -> Result<Option<i32>, Malformed> {
        let present = reader.flag()?;
        let value = i32::try_from(reader.number()?).map_err(|_| Malformed)?;
        Ok(present.then_some(value))
    };
    let (code, signal) = (optional()?, optional()?);
    Ok(ExitNotice {
        code,
        signal,
        wall_nanos: reader.number()?,
        user_micros: reader.number()?,
        system_micros: reader.number()?,
        largest_kib: reader.number()?,
        init_user_micros: reader.number()?,
        init_system_micros: reader.number()?,
        read_bytes: reader.number()?,
        written_bytes: reader.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_reads_back() {
        let config = Config {
            walls: Walls::all(),
            image: "/srv/image".into(),
            filter: vec![1, 2, 3],
            filter_notifies: true,
            cgroup_prefix: "sandbox-run.1.".into(),
            disk_bytes: 5,
            disk_inodes: 6,
        };
        assert_eq!(Config::decode(&config.encode()), Ok(config));
        let order = Order {
            argv: vec!["/bin/true", "x"],
            env: vec!["A=b"],
            directory: "sub",
            files: vec![OrderFile { path: "a/b", contents: b"\0\xff", executable: true }],
            disk_bytes: 1,
            disk_inodes: 2,
            rlimits: vec![(7, 256)],
            cores: 3,
            loopback: true,
            gate_port: 3128,
            reaches_out: true,
            volumes: vec![OrderVolume {
                destination: "/data",
                is_directory: true,
                writable: false,
                overlay: Overlay::CopyOnWrite,
            }],
            workspace: Some(OrderWorkspace { bytes: 1, inodes: 2, has_content: true }),
            waits: true,
            adopts: 7,
        };
        let mut bytes = Vec::new();
        order.encode_into(&mut bytes);
        assert_eq!(Order::decode(&bytes), Ok(order));
        for errand in [
            Errand::Slot { clone_into: true, kind: SlotKind::Waiting },
            Errand::Farewell,
            Errand::Original { order: vec![1, 2] },
            Errand::Volume {
                path: "/srv".into(),
                links: Links::Followed,
                writable: true,
                owner: Some(VolumeOwner { user: 1, group: 2, program: 5 }),
            },
        ] {
            assert_eq!(Errand::decode(&errand.encode()), Ok(errand));
        }
        for notice in [
            Notice::Ready { owner: 7 },
            Notice::Cloned,
            Notice::Gate,
            Notice::Workspace,
            Notice::Confined,
            Notice::Network,
            Notice::Starting,
            Notice::Failed(StepError { step: "mount".into(), cause: Errno::PERM }),
            Notice::Exited(ExitNotice { code: Some(3), wall_nanos: 9, ..ExitNotice::default() }),
            Notice::Gone,
        ] {
            assert_eq!(Notice::decode(&notice.encode()), Ok(notice));
        }
    }
}
