//! cgroup v1: one hierarchy per controller, so one cgroup is several directories.

mod cgroup;
mod detect;
mod files;

pub(crate) use detect::V1Hierarchy;
