//! cgroup v2: one hierarchy for all controllers, so one cgroup is one directory.

mod cgroup;
mod detect;
mod files;
mod hierarchy;

pub(crate) use hierarchy::V2Hierarchy;
