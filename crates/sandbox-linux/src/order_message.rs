//! An order on its way: in the message itself if it is short, else in a sealed memory file beside it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use crate::mapped::MappedFile;
use crate::order::Order;
use crate::socket::{self, LARGEST_MESSAGE, Message};
use crate::step::{AtStep, StepError};

const IN_THE_MESSAGE: u8 = b'm';
const IN_A_FILE: u8 = b'f';
/// What init hears in place of an order: the stub has it.
pub(crate) const BEGUN: &[u8] = b"b";

/// An order that has arrived.
pub(crate) struct OrderMessage {
    /// The first byte says where the order is.
    bytes: Vec<u8>,
    file: Option<MappedFile>,
    /// What came with it.
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl OrderMessage {
    /// Takes a message apart.
    pub(crate) fn open(message: Message) -> Result<Self, StepError> {
        let Message { bytes, mut descriptors } = message;
        let file = match bytes.first() {
            Some(&IN_THE_MESSAGE) => None,
            Some(&IN_A_FILE) if !descriptors.is_empty() => {
                let file = descriptors.remove(0);
                Some(MappedFile::new(file.as_fd()).at("map the order")?)
            }
            _ => return Err(Errno::PROTO).at("read the order"),
        };
        Ok(Self { bytes, file, descriptors })
    }

    /// The order itself.
    pub(crate) fn read(&self) -> Result<Order<'_>, StepError> {
        let bytes = match &self.file {
            Some(mapped) => mapped.bytes(),
            None => &self.bytes[1..],
        };
        Order::decode(bytes).map_err(|_| Errno::PROTO).at("read the order")
    }
}

/// Sends an order.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    order: &Order<'_>,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), StepError> {
    let mut bytes = vec![IN_THE_MESSAGE];
    order.encode_into(&mut bytes);
    if bytes.len() <= LARGEST_MESSAGE {
        return socket::send(socket, &bytes, descriptors).at("send an order");
    }
    let file = sealed_memory(&bytes[1..])?;
    let mut with_file = vec![file.as_fd()];
    with_file.extend(descriptors);
    socket::send(socket, &[IN_A_FILE], &with_file).at("send an order")
}

/// Bytes that nobody can change any more, as a file.
fn sealed_memory(bytes: &[u8]) -> Result<OwnedFd, StepError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("sandbox", flags).at("make a memory file")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).at("fill a memory file")?;
        rest = &rest[written..];
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals).at("seal a memory file")?;
    Ok(file)
}
