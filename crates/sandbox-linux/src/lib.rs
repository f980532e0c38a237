//! The native walls of sandbox-run, in the order a newcomer should read them.
//!
//! Five kinds of process. All but the first and the last are copies of the launcher:
//!
//! * the **supervisor** is the program that uses the library; it may have threads and never clones;
//! * the **launcher** is its only child: single-threaded, it clones an init for each sandbox and outlives
//!   it (`launcher`, `reexec`, `slot`);
//! * **init** is process 1 of a sandbox: it joins the cgroups, builds the walls ahead of time, waits for an
//!   order, starts the program, reaps and reports (`init`);
//! * the **stub** is init's child: it stands inside every wall and waits to become the program (`stub`);
//! * the **program** is not our code any more (`program` tells how the stub becomes one).
//!
//! In containers that others build, an agent takes the place of the middle three (`guest`), and a **filler** lays out what
//! a workspace had (`workspace`).
//!
//! Messages between these processes are those of sandbox-protocol. Unsafe code is here, in sandbox-agent and in
//! sandbox-zygote only, all of it system calls.

mod client;
mod config;
mod exec_message;
mod original;
mod overlay;
mod own_root;

mod reexec;

mod launcher;
pub mod mountinfo;
pub mod private_root;
pub mod skeleton;
mod template;
mod volume;

pub mod ids;
mod slot;

mod init;
mod place;

pub mod attach;
pub mod capabilities;
mod clock;
pub mod container_inodes;
mod device_nodes;
pub mod empty_network;
mod loopback;
mod netlink;
pub mod private_mounts;
mod program;
pub mod restrict;
pub mod rlimits;
mod stub;
pub mod way_out;
pub mod workspace;

pub mod landlock;
pub mod seccomp;

pub mod cgroup;

pub mod collect;
pub mod guest;
pub mod snapshot;

mod walls;

pub mod write_order;

mod mapped;
mod memory;
mod socket;
mod step;
mod streams;
mod syscall;
mod thread;

pub use client::{
    LaunchError, Launcher, Received, Slot, SlotStreams, UnconfiguredLauncher, ask_to_end,
};
pub use config::Config;
pub use memory::release_free_memory;
pub use original::{Copy, CopyInto, Original, can_copy};
pub use step::StepError;
pub use syscall::close_others_on_exec;
pub use walls::Walls;
