//! The limit tests as one static program, for a machine where cgroups have version 2 only.
//!
//! `tests/guest/run` starts it as root in a small virtual machine that holds a shell, busybox and this
//! program, which is its own payload too: `guest-limits payload …` is what runs inside the sandbox, and
//! `guest-limits doomed` is a supervisor to be killed. It goes to the backend directly, with plans
//! instead of requests, because there is no toolchain to probe. A failing case is printed and the next
//! one goes on; the exit code tells whether all held.

#[macro_use]
mod outcome;

mod afterwards;
mod cases;
mod kernel_memory;
mod payload;
mod plans;

use std::process::ExitCode;

use sandbox_backends::native::{NativeBackend, NativeOptions};
use sandbox_linux::cgroup::{Hierarchy, Version};

use outcome::Outcome;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("payload") => payload::run(&arguments[1..]),
        Some("doomed") => afterwards::wait_to_be_killed(),
        _ => run_all(),
    }
}

#[expect(clippy::print_stdout, reason = "this is a program that reports to a terminal")]
fn run_all() -> ExitCode {
    let version = Hierarchy::detect().version();
    println!("cgroups: {version:?}");
    if version != Version::V2 {
        println!("FAILED: this machine was meant to have cgroups of version 2 only");
        return ExitCode::FAILURE;
    }
    let backend = match NativeBackend::start(&NativeOptions::default()) {
        Ok(backend) => backend,
        Err(error) => {
            println!("FAILED: no backend: {}", sandbox::with_causes(&error));
            return ExitCode::FAILURE;
        }
    };
    println!("{}", backend.describe_cgroups());
    let mut failed = 0;
    for (name, case) in cases::CASES {
        failed += told(name, case(&backend));
    }
    drop(backend);
    for (name, case) in afterwards::CASES {
        failed += told(name, case());
    }
    println!("{} cases, {failed} failed", cases::CASES.len() + afterwards::CASES.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints how a case ended and counts it if it failed.
#[expect(clippy::print_stdout, reason = "this is a program that reports to a terminal")]
fn told(name: &str, outcome: Outcome) -> u32 {
    match outcome {
        Ok(()) => {
            println!("ok      {name}");
            0
        }
        Err(why) => {
            println!("FAILED  {name}: {why}");
            1
        }
    }
}
