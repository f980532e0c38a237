//! The kernel mechanisms of sandbox-run, in the order in which to read them.
//!
//! Five kinds of processes take part. All but the first and the last are forked from the launcher:
//!
//! * The **supervisor** is the program that uses the library. It may have threads and never clones.
//! * The **launcher** is its only child. It is single-threaded, clones an init for each sandbox and
//!   outlives it (`launcher`, `reexec`, `slot`).
//! * **Init** is process 1 of a sandbox. It joins the cgroups, sets up the isolation ahead of time,
//!   waits for an exec request, starts the program, reaps and reports (`init`).
//! * The **stub** is a child of init. It confines itself and waits to exec the program (`stub`).
//!   In an **instance**, init clones a **shim** for each program (`init::instance`, `shim`).
//! * The **program** is not trusted (`program` tells how the stub becomes one).
//!
//! A runtime may also be started once as a **zygote**, which is forked into sandboxes (`zygote`). In
//! containers, the agent takes the place of launcher, init and stub (`agent`), and a **filler**
//! restores a workspace (`workspace_filler`).
//!
//! The messages between these processes are defined in sandbox-protocol. Unsafe code is only here,
//! in sandbox-agent and in sandbox-zygote; all of it is system calls.

mod client;
mod config;
mod exec_message;
mod launch;
mod overlay;
mod volume_root;
mod zygote;

mod reexec;

mod launcher;
pub mod mountinfo;
pub mod private_root;
pub mod skeleton;
mod template;
mod volume;

pub mod ids;
mod shim;
mod slot;

mod init;
mod rootfs;

pub mod attach;
pub mod capabilities;
mod clock;
pub mod container_inodes;
mod device_nodes;
pub mod egress_network;
pub mod empty_network;
pub mod ipc_limits;
mod loopback;
mod netlink;
pub mod private_mounts;
mod program;
pub mod restrict;
pub mod rlimits;
mod stub;
pub mod workspace;
mod workspace_filler;

pub mod landlock;
pub mod seccomp;

pub mod cgroup;

pub mod agent;
pub mod collect;
pub mod snapshot;
pub mod work_files;

mod protection_set;

pub mod write_order;

mod mapped;
mod memory;
mod socket;
mod step;
mod streams;
mod syscall;
mod thread;

pub use client::{Launcher, Received, Slot, SlotStreams, UnconfiguredLauncher, ask_to_end};
pub use config::Config;
pub use launch::LaunchError;
pub use memory::release_free_memory;
pub use protection_set::ProtectionSet;
pub use shim::Shim;
pub use step::StepError;
pub use syscall::close_others_on_exec;
pub use zygote::{Fork, ForkTarget, Zygote, can_fork};
