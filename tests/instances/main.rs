//! Instances: sandboxes that run any number of processes, one after another and at once.

mod confinement;
mod files;
mod harness;
mod limits;
mod network;
mod processes;
mod teardown;
mod volumes;
