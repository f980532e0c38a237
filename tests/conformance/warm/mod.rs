//! Warm runtimes: what a program can see must not depend on whether its runtime was warm or cold, and nothing of one
//! program may reach another.
//!
//! Known differences, and why:
//! - `/proc/self/environ` and the arguments in `/proc/self/cmdline` are those of the start: the kernel keeps
//!   what exec was given.
//! - The process id of a fork of a zygote: the helper that made it had the one before.
//! - The zygote library is in `/proc/self/maps` of a fork.
//! - Node and Java load the code that makes them wait from a layer, which is mounted below `/opt/layers`, read-only. A
//!   waiting Java has the archive in it open.
//! - The processor time and the memory of starting are in a process's own count, not in the report's.
//! - Python: `gc.get_freeze_count()` is not 0, and `gc.get_objects()` has nothing of the start-up in it.
//! - Python: what only an attribute that the program gave to a module of the start-up (`os`, `io`) refers to is
//!   not finalised at the end: those modules are never taken apart.

mod apart;
mod early_exit;
mod faults;
mod others;
mod pool;
mod program;
mod python;
mod random;
mod same;
