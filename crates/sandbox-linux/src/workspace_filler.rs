//! The filler: a process in a container's cgroup that restores the container's workspace.

use std::fs::File;
use std::io;

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::snapshot::restore;

/// The message that tells a filler to start.
pub(crate) const BEGIN: &[u8] = b"b";

/// Waits for the start message and restores the content. Standard input is the content, standard
/// output the directory, and the third descriptor the socket.
pub(crate) fn run(owner: u32) -> io::Result<()> {
    // Ends the process if the supervisor dies.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut word = [0; BEGIN.len()];
    if rustix::io::read(rustix::stdio::stderr(), &mut word)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let content = File::from(rustix::io::dup(rustix::stdio::stdin())?);
    restore(content, rustix::stdio::stdout(), owner)
}
