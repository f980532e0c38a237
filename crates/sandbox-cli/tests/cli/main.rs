//! Tests of the built command.

mod bad_requests;
mod cache;
mod commands;
mod host_packages;
mod images;
mod images_build;
mod inodes;
mod inputs;
mod install;
mod isolation;
mod network;
mod packages;
mod remote;
mod run;
mod support;
mod templates;
mod warm;
mod workspaces;
