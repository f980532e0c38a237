//! Instances: sandboxes that run any number of processes, one after another and at once.

mod confinement;
mod files;
mod harness;
mod limits;
mod processes;
mod teardown;
