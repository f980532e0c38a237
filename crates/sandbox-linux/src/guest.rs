//! The agent that runs as process 1 of containers which other runtimes build, and what is said to it.

#[path = "../agent/frame.rs"]
pub mod frame;

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use sandbox_core::{InputFile, StagePlan, VolumeAccess};

use crate::order::ExitNotice;
use frame::{Packer, Unpacker};

/// The agent: a program that needs nothing of the container that it is in. Empty where it could not be built.
pub const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// A file that the program left, as the agent names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestFile {
    /// Kind and permissions.
    pub mode: u32,
    /// As large as it says it is.
    pub size: u64,
    /// Below the work directory.
    pub path: Vec<u8>,
}

/// What the agent puts around a program.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    /// Resource limits, by the kernel's numbers.
    pub rlimits: &'a [(u64, u64)],
    /// The system-call filter.
    pub filter: &'a [u8],
    /// How the agent answers calls that the filter asks it about; empty if it asks about none.
    pub answers: &'a [u8],
    /// The program's user, if the agent is another.
    pub user: Option<u32>,
    /// Which version of Landlock the agent makes rules for; 0 for none.
    pub landlock: u32,
}

/// Where a container shows a tree that the program may write to as if it were its own: the agent fills the place where
/// the program looks for it with directories, and links to the files in here.
pub fn place_of_original(number: usize) -> PathBuf {
    PathBuf::from(format!("/mnt/{number}"))
}

/// The order for a plan.
pub fn order(plan: &StagePlan, inside: Inside<'_>) -> Vec<u8> {
    let Inside { rlimits, filter, answers, user, landlock } = inside;
    let mut order = Packer::default();
    order.number(plan.command.len() as u64);
    for word in &plan.command {
        order.bytes(word.as_bytes());
    }
    order.number(plan.env.len() as u64);
    for (name, value) in &plan.env {
        order.bytes(format!("{name}={value}").as_bytes());
    }
    order.bytes(plan.directory.as_bytes());
    let files: Vec<&InputFile> = plan.all_files().collect();
    order.number(files.len() as u64);
    for file in files {
        order.bytes(file.path.as_str().as_bytes());
        order.number(u64::from(file.executable)).bytes(&file.contents);
    }
    let copied = plan.trees.iter().enumerate().filter(|(_, tree)| tree.copy_on_write);
    let copied: Vec<_> = copied.collect();
    order.number(copied.len() as u64);
    for (number, tree) in copied {
        order.bytes(place_of_original(number).as_os_str().as_bytes());
        order.bytes(tree.inside.as_os_str().as_bytes());
    }
    order.number(rlimits.len() as u64);
    for (kind, value) in rlimits {
        order.number(*kind).number(*value);
    }
    order.bytes(filter).bytes(answers).number(user.unwrap_or(0).into()).number(landlock.into());
    let volumes = plan.volumes.iter();
    let writable = volumes.filter(|volume| volume.access() == VolumeAccess::ReadWrite);
    let writable: Vec<_> = writable.map(|volume| volume.destination().as_os_str()).collect();
    order.number(writable.len() as u64);
    for place in writable {
        order.bytes(place.as_bytes());
    }
    order.0
}

/// Reads what the agent says of an end. None if it makes no sense: what comes from inside is not believed.
pub fn exit(payload: &[u8]) -> Option<ExitNotice> {
    let mut told = Unpacker(payload);
    let status = i32::try_from(told.number()?).ok()?;
    let (low, high) = (status & 0x7f, (status >> 8) & 0xff);
    Some(ExitNotice {
        code: (low == 0).then_some(high),
        signal: (low != 0).then_some(low),
        wall_nanos: told.number()?,
        user_micros: told.number()?,
        system_micros: told.number()?,
        largest_kib: told.number()?,
        read_bytes: told.number()?,
        written_bytes: told.number()?,
        ..ExitNotice::default()
    })
}

/// Reads a call that was denied: its number and arguments.
pub fn denied(payload: &[u8]) -> Option<(u32, [u64; 6])> {
    let mut told = Unpacker(payload);
    let number = u32::try_from(told.number()?).ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = told.number()?;
    }
    Some((number, arguments))
}

/// Reads the name of a file.
pub fn file(payload: &[u8]) -> Option<GuestFile> {
    let mut told = Unpacker(payload);
    let mode = u32::try_from(told.number()?).ok()?;
    let size = told.number()?;
    Some(GuestFile { mode, size, path: told.0.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u64) -> Vec<u8> {
        let mut told = Packer::default();
        told.number(status).number(2).number(3).number(4).number(5).number(6).number(7);
        told.0
    }

    #[test]
    fn a_status_is_a_code_or_a_signal() {
        let exited = exit(&told(7 << 8)).unwrap();
        assert_eq!((exited.code, exited.signal, exited.wall_nanos), (Some(7), None, 2));
        let killed = exit(&told(9)).unwrap();
        assert_eq!((killed.code, killed.signal, killed.written_bytes), (None, Some(9), 7));
        // With a core dump, as the kernel writes it.
        assert_eq!(exit(&told(0x80 | 0xb)).unwrap().signal, Some(11));
    }

    #[test]
    fn what_makes_no_sense_is_not_believed() {
        assert_eq!(exit(&told(u64::MAX)), None);
        assert_eq!(exit(&told(0)[..20]), None);
        assert_eq!(file(b"short"), None);
    }
}
