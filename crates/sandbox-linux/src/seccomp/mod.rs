//! The system call filter: what a sandboxed program may ask of the kernel.
//!
//! The policy is data (`profiles/default.toml`), each entry with its reason. It is read into a
//! [`Profile`], and from there two independent roads lead to the same answer:
//!
//! * [`Profile::compile`] turns it into a [`Program`] that the kernel runs at every call. It is
//!   built once and kept short, because installing a filter costs time for every instruction.
//! * [`Profile::verdict`] judges one call directly from the data. The supervisor uses it to name
//!   and answer a call that the kernel handed over, and the tests compare it with the program.
//!
//! [`install`] puts a program in force for the calling thread, and [`Notifications`] is the
//! supervisor's end: denied calls arrive there, are counted, and are answered with an errno. A call
//! is never let through from there, so that it does not matter that memory behind its arguments may
//! change in the meantime. When the supervisor is gone the kernel answers ENOSYS by itself.
//!
//! [`Profile::docker_json`] and [`Profile::oci_json`] write the same policy down for container runtimes.

mod arch;
mod deny_rules;
mod error;
mod file;
mod profile;
mod rules;
mod verdict;

mod assembler;
mod compile;
mod program;
mod switch;

mod install;
mod notify;

mod blocks;
mod container;

#[cfg(test)]
mod tests;

pub use arch::Arch;
pub use compile::DeniedAction;
pub use container::ContainerFilter;
pub use error::{EntryProblem, ProfileError};
pub use install::{Listener, install};
pub use notify::{Notification, Notifications};
pub use profile::Profile;
pub use program::{Program, ProgramError};
pub use verdict::Verdict;
